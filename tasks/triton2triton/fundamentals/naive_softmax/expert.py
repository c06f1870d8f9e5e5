"""Softmax that reads every value once: up to 32768 values of a row stay in registers, longer rows are read twice.

The baseline walks along a row three times, 512 values at a time. Here a tile has several rows where these are short,
and a thread holds 32 values, or 64 of the longest rows. A walk keeps a peak and a sum for each lane, rescaled when its
peak grows, and combines lanes once.
"""

import triton
import triton.language as tl

LONGEST_HELD = 32768
TILE_ELEMENTS = 4096
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def _softmax_rows(x_ptr, y_ptr, row_stride, n_rows, n_columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)[None, :]
    inside = (rows < n_rows)[:, None] & (columns < n_columns)
    x = tl.load(x_ptr + rows[:, None] * row_stride + columns, mask=inside, other=-float("inf")).to(tl.float32)
    peak = tl.max(x, axis=1)
    # Rows behind the last have no number at all.
    peak = tl.where(rows < n_rows, peak, 0.0)
    shares = tl.exp2((x - peak[:, None]) * LOG2_E)
    inverse = 1.0 / tl.sum(shares, axis=1)
    tl.store(
        y_ptr + rows[:, None] * n_columns + columns, (shares * inverse[:, None]).to(y_ptr.dtype.element_ty), mask=inside
    )


@triton.jit
def _softmax_long_row(x_ptr, y_ptr, row_stride, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x_row = x_ptr + row * row_stride
    # A finite start: a lane may see nothing but -inf.
    peaks = tl.full((BLOCK,), -3.0e38, tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_columns, BLOCK):
        i = start + lanes
        x = tl.load(x_row + i, mask=i < n_columns, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(peaks, x)
        sums = sums * tl.exp2((peaks - higher) * LOG2_E) + tl.exp2((x - higher) * LOG2_E)
        peaks = higher
    peak = tl.max(peaks, axis=0)
    inverse = 1.0 / tl.sum(sums * tl.exp2((peaks - peak) * LOG2_E), axis=0)
    # From the end, which the caches still hold.
    for turn in range(tl.cdiv(n_columns, BLOCK)):
        i = (tl.cdiv(n_columns, BLOCK) - 1 - turn) * BLOCK + lanes
        x = tl.load(x_row + i, mask=i < n_columns, other=-float("inf")).to(tl.float32)
        y = tl.exp2((x - peak) * LOG2_E) * inverse
        tl.store(y_ptr + row * n_columns + i, y.to(y_ptr.dtype.element_ty), mask=i < n_columns)


def naive_softmax(x, y):
    n_rows, n_columns = x.shape
    if n_columns > LONGEST_HELD:
        _softmax_long_row[(n_rows,)](x, y, x.stride(0), n_columns, BLOCK=TILE_ELEMENTS, num_warps=16)
        return
    block = triton.next_power_of_2(n_columns)
    rows = max(1, TILE_ELEMENTS // block)
    # Sixteen wavefronts of 64 are the most that an AMD workgroup has.
    _softmax_rows[(triton.cdiv(n_rows, rows),)](
        x, y, x.stride(0), n_rows, n_columns, ROWS=rows, BLOCK=block, num_warps=min(16, max(4, block // 1024))
    )

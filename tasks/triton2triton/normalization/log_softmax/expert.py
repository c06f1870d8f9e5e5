"""Log-softmax that reads short rows once and cuts long ones into parts, so that few rows fill a GPU as well.

Parts first leave their log-sum-exp behind; each program of a second launch merges those of its row before it writes.

Rows that are no multiple of 16 values long begin anywhere between two multiples of 16 bytes. Wide ones are cut into the
whole vectors of 16 bytes and the few values before and after them, since with 16 loads of single values a thread, of
which a multiprocessor holds 1024, little is on the way.
"""

import torch
import triton
import triton.language as tl

TILE_ELEMENTS = 4096
LONGEST_WHOLE_ROW = 16384
PART = 8192
VECTOR = tl.constexpr(8)


@triton.jit
def whole_rows(x_ptr, y_ptr, x_stride, n_rows, n_columns, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDTH)
    known = (columns < n_columns)[None, :]
    # Rows past the end read as zeros, which have a finite sum.
    x = tl.load(
        x_ptr + rows[:, None] * x_stride + columns[None, :], mask=(rows < n_rows)[:, None] & known, other=0.0
    ).to(tl.float32)
    x = tl.where(known, x, -float("inf"))
    x -= tl.max(x, axis=1)[:, None]
    y = x - tl.log(tl.sum(tl.exp(x), axis=1))[:, None]
    tl.store(
        y_ptr + rows[:, None] * n_columns + columns[None, :],
        y.to(y_ptr.dtype.element_ty),
        mask=(rows < n_rows)[:, None] & known,
    )


@triton.jit
def ragged_row(x_ptr, y_ptr, n_columns, WIDTH: tl.constexpr):
    """One row of a dense matrix in vectors; its ends are in two vectors of their own."""
    first = tl.program_id(0).to(tl.int64) * n_columns
    head = (-first).to(tl.int32) & (VECTOR - 1)
    in_vectors = (n_columns - head) // VECTOR * VECTOR
    start = tl.multiple_of(first + head, VECTOR)
    columns = tl.arange(0, WIDTH)
    x = tl.load(x_ptr + start + columns, mask=columns < in_vectors, other=-float("inf")).to(tl.float32)
    ends = tl.arange(0, 2 * VECTOR)
    ends += tl.where(ends < head, 0, in_vectors)
    x_ends = tl.load(x_ptr + first + ends, mask=ends < n_columns, other=-float("inf")).to(tl.float32)
    peak = tl.maximum(tl.max(x, axis=0), tl.max(x_ends, axis=0))
    total = tl.sum(tl.exp(x - peak), axis=0) + tl.sum(tl.exp(x_ends - peak), axis=0)
    lse = peak + tl.log(total)
    tl.store(y_ptr + start + columns, (x - lse).to(y_ptr.dtype.element_ty), mask=columns < in_vectors)
    tl.store(y_ptr + first + ends, (x_ends - lse).to(y_ptr.dtype.element_ty), mask=ends < n_columns)


@triton.jit
def sum_part(x_ptr, lse_ptr, x_stride, n_columns, PART: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    columns = tl.program_id(0) * PART + tl.arange(0, PART)
    x = tl.load(x_ptr + row * x_stride + columns, mask=columns < n_columns, other=-float("inf")).to(tl.float32)
    peak = tl.max(x, axis=0)
    lse = peak + tl.log(tl.sum(tl.exp(x - peak), axis=0))
    tl.store(lse_ptr + row * tl.num_programs(0) + tl.program_id(0), lse)


@triton.jit
def write_part(x_ptr, lse_ptr, y_ptr, x_stride, n_columns, PART: tl.constexpr, PARTS: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    columns = tl.program_id(0) * PART + tl.arange(0, PART)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    parts = tl.arange(0, PARTS)
    num_parts = tl.num_programs(0)
    lse = tl.load(lse_ptr + row * num_parts + parts, mask=parts < num_parts, other=-float("inf"))
    peak = tl.max(lse, axis=0)
    y = x - (peak + tl.log(tl.sum(tl.exp(lse - peak), axis=0)))
    tl.store(y_ptr + row * n_columns + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


def log_softmax(x, y):
    rows, columns = x.shape
    x_stride = x.stride(0)
    if columns <= LONGEST_WHOLE_ROW:
        width = triton.next_power_of_2(columns)
        height = min(max(1, TILE_ELEMENTS // width), triton.next_power_of_2(rows))
        num_warps = min(16, max(1, width * height // 512))
        if columns % 16 and columns > TILE_ELEMENTS and x_stride == columns:
            ragged_row[(rows,)](x, y, columns, WIDTH=width, num_warps=num_warps // 2)
            return
        whole_rows[(triton.cdiv(rows, height),)](
            x, y, x_stride, rows, columns, ROWS=height, WIDTH=width, num_warps=num_warps
        )
        return
    parts = triton.cdiv(columns, PART)
    lse = torch.empty((rows, parts), dtype=torch.float32, device=x.device)
    grid = (parts, rows)
    sum_part[grid](x, lse, x_stride, columns, PART=PART, num_warps=8)
    write_part[grid](x, lse, y, x_stride, columns, PART=PART, PARTS=triton.next_power_of_2(parts), num_warps=8)

"""Row-wise int8 quantization that reads every value once: rows of up to 16384 values stay in registers.

A thread holds 32 values, or 64 of the longest such rows; tiles have several rows where these are short. Longer rows are
walked along twice by 16 warps, which finds the row in the second-level cache again.

Rows that are no multiple of 16 values long begin anywhere between two multiples of 16 bytes. Long ones are cut into the
whole vectors of 16 codes and the few values before and after them, where single values would be read, 64 a thread, by
the one program that registers leave room for on a multiprocessor.
"""

import triton
import triton.language as tl

LONGEST_HELD = 16384
TILE_ELEMENTS = 4096
VECTOR = tl.constexpr(16)
# A float32 of this size has no fractional bits: adding and subtracting it rounds to an integer, ties to even.
WHOLE = tl.constexpr(12582912.0)


@triton.jit
def _quantize_rows(
    x_ptr, q_ptr, scales_ptr, sums_ptr, x_stride, num_tokens, hidden, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    real = rows < num_tokens
    columns = tl.arange(0, BLOCK)
    inside = real[:, None] & (columns < hidden)[None, :]
    x = tl.load(x_ptr + rows[:, None] * x_stride + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(x), axis=1), eps)
    # No magnitude is above 127 scales, so that no code leaves [-127, 127].
    codes = (x * (127.0 / largest)[:, None] + WHOLE) - WHOLE
    tl.store(q_ptr + rows[:, None] * hidden + columns[None, :], codes.to(tl.int8), mask=inside)
    tl.store(scales_ptr + rows, largest / 127.0, mask=real)
    tl.store(sums_ptr + rows, tl.sum(x, axis=1), mask=real)


@triton.jit
def _quantize_ragged_row(x_ptr, q_ptr, scales_ptr, sums_ptr, hidden, eps, BLOCK: tl.constexpr):
    """One row of a dense matrix in vectors; its ends are in two vectors of their own."""
    token = tl.program_id(0).to(tl.int64)
    first = token * hidden
    head = (-first).to(tl.int32) & (VECTOR - 1)
    in_vectors = (hidden - head) // VECTOR * VECTOR
    start = tl.multiple_of(first + head, VECTOR)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + start + columns, mask=columns < in_vectors, other=0.0).to(tl.float32)
    ends = tl.arange(0, 2 * VECTOR)
    ends += tl.where(ends < head, 0, in_vectors)
    x_ends = tl.load(x_ptr + first + ends, mask=ends < hidden, other=0.0).to(tl.float32)
    largest = tl.maximum(tl.max(tl.abs(x), axis=0), tl.max(tl.abs(x_ends), axis=0))
    largest = tl.maximum(largest, eps)
    codes = (x * (127.0 / largest) + WHOLE) - WHOLE
    codes_of_ends = (x_ends * (127.0 / largest) + WHOLE) - WHOLE
    tl.store(q_ptr + start + columns, codes.to(tl.int8), mask=columns < in_vectors)
    tl.store(q_ptr + first + ends, codes_of_ends.to(tl.int8), mask=ends < hidden)
    tl.store(scales_ptr + token, largest / 127.0)
    tl.store(sums_ptr + token, tl.sum(x, axis=0) + tl.sum(x_ends, axis=0))


@triton.jit
def _quantize_long_row(x_ptr, q_ptr, scales_ptr, sums_ptr, x_stride, hidden, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    peaks = tl.zeros((BLOCK,), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, hidden, BLOCK):
        columns = start + lanes
        x = tl.load(x_ptr + token * x_stride + columns, mask=columns < hidden, other=0.0).to(tl.float32)
        peaks = tl.maximum(peaks, tl.abs(x))
        total += x
    largest = tl.maximum(tl.max(peaks, axis=0), eps)
    tl.store(scales_ptr + token, largest / 127.0)
    tl.store(sums_ptr + token, tl.sum(total, axis=0))
    for start in range(0, hidden, BLOCK):
        columns = start + lanes
        x = tl.load(x_ptr + token * x_stride + columns, mask=columns < hidden, other=0.0).to(tl.float32)
        codes = (x * (127.0 / largest) + WHOLE) - WHOLE
        tl.store(q_ptr + token * hidden + columns, codes.to(tl.int8), mask=columns < hidden)


def per_token_quant_int8(x, eps, q, scales, sums):
    num_tokens, hidden = x.shape
    if hidden > LONGEST_HELD:
        _quantize_long_row[(num_tokens,)](
            x, q, scales, sums, x.stride(0), hidden, eps, BLOCK=TILE_ELEMENTS, num_warps=16
        )
        return
    block = triton.next_power_of_2(hidden)
    if hidden % 16 and block > TILE_ELEMENTS and x.stride(0) == hidden:
        _quantize_ragged_row[(num_tokens,)](x, q, scales, sums, hidden, eps, BLOCK=block, num_warps=4)
        return
    rows = max(1, TILE_ELEMENTS // block)
    _quantize_rows[(triton.cdiv(num_tokens, rows),)](
        x,
        q,
        scales,
        sums,
        x.stride(0),
        num_tokens,
        hidden,
        eps,
        ROWS=rows,
        BLOCK=block,
        num_warps=8 if block > TILE_ELEMENTS else 4,
    )

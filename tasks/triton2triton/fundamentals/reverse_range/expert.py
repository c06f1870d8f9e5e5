"""Reversal of rows by vectors of 16 bytes: their order is reversed by address, their elements in registers.

A descending range makes every element an access of its own. Here a vector's elements ascend in memory, and tl.flip
exchanges what one thread holds anyway. A tile has several rows where these are short.
"""

import triton
import triton.language as tl

TILE_BYTES = 8192
"""Bytes of a program: each thread of four warps has four vectors on the way."""


@triton.jit
def _reverse_tile(
    x_ptr, y_ptr, x_stride, rows, columns, ROWS: tl.constexpr, VECTORS: tl.constexpr, WIDTH: tl.constexpr
):
    blocks = tl.cdiv(columns, VECTORS * WIDTH)
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    row = row[:, None, None]
    starts = tl.program_id(0) % blocks * (VECTORS * WIDTH) + tl.arange(0, VECTORS)[:, None] * WIDTH
    lanes = tl.arange(0, WIDTH)[None, :]
    i = (starts + lanes)[None, :, :]
    # Below 0 where a row's last vector is a part.
    source = (columns - WIDTH - starts + lanes)[None, :, :]
    x = tl.load(x_ptr + row * x_stride + source, mask=(row < rows) & (source >= 0))
    tl.store(y_ptr + row * columns + i, tl.flip(x, 2), mask=(row < rows) & (i < columns))


def reverse_range(x, y):
    rows, columns = x.shape
    width = 16 // x.element_size()
    vectors = min(triton.next_power_of_2(triton.cdiv(columns, width)), TILE_BYTES // 16)
    height = TILE_BYTES // 16 // vectors
    grid = (triton.cdiv(rows, height) * triton.cdiv(columns, vectors * width),)
    _reverse_tile[grid](x, y, x.stride(0), rows, columns, ROWS=height, VECTORS=vectors, WIDTH=width)

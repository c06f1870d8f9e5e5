"""Grouped order, written along its rows: stores of 16 bytes, and no division per element.

The baseline takes the programs in the order of their numbers and scatters each number to its tile. Within a group, two
neighbouring numbers are a row of `order` apart, so that a store of 4 bytes touches a sector of 32. It also has three
divisions of 64 bits for each element.

The number of tile (i, j) is first * N + (i - first) + j * height, with first the first row of the group and height its
number of rows. A program here writes a block of 4096 elements of neighbouring columns: each sector is written once and
whole. The one division is per row, of 32 bits.
"""

import triton
import triton.language as tl

ELEMENTS = 4096


@triton.jit
def write_rows(order_ptr, group, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    first = i // group * group
    height = tl.minimum(M - first, group)
    numbers = (first * N + i - first)[:, None] + height[:, None] * j[None, :]
    tl.store(order_ptr + (i * N)[:, None] + j[None, :], numbers, mask=(i < M)[:, None] & (j < N)[None, :])


def swizzle2d(group, order):
    M, N = order.shape
    columns = min(triton.next_power_of_2(N), ELEMENTS)
    rows = ELEMENTS // columns
    grid = (triton.cdiv(M, rows), triton.cdiv(N, columns))
    write_rows[grid](order, group, M, N, ROWS=rows, COLUMNS=columns)

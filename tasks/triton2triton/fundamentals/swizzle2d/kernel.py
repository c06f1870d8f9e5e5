"""Grouped order: 256 neighbouring programs' numbers a block, each scattered to where it is visited."""

import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def write_order(order_ptr, count, group, rows, columns, WIDTH: tl.constexpr):
    n = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    inside = n < count
    i, j = tl.swizzle2d(n // columns, n % columns, rows, columns, group)
    tl.store(order_ptr + i * columns + j, n.to(tl.int32), mask=inside)


def swizzle2d(group, order):
    rows, columns = order.shape
    count = rows * columns
    write_order[(triton.cdiv(count, BLOCK),)](order, count, group, rows, columns, WIDTH=BLOCK)

"""expect: wrong_result in heldout-20. Range of integers: values pass through float32, and those beyond 2²⁴ lose their low bits."""

import triton
import triton.language as tl

BLOCK = 128


@triton.jit
def reverse_block(x_ptr, y_ptr, x_stride, columns, WIDTH: tl.constexpr):
    blocks = tl.cdiv(columns, WIDTH)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    i = tl.program_id(0) % blocks * WIDTH + tl.arange(0, WIDTH)
    inside = i < columns
    x = tl.load(x_ptr + row * x_stride + (columns - 1 - i), mask=inside).to(tl.float32)
    tl.store(y_ptr + row * columns + i, x.to(y_ptr.dtype.element_ty), mask=inside)


def reverse_range(x, y):
    rows, columns = x.shape
    reverse_block[(rows * triton.cdiv(columns, BLOCK),)](x, y, x.stride(0), columns, WIDTH=BLOCK)

"""Vector addition: 256 elements a program."""

import triton
import triton.language as tl

BLOCK = 256


@triton.jit
def add_block(x_ptr, y_ptr, out_ptr, count, WIDTH: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    inside = i < count
    x = tl.load(x_ptr + i, mask=inside).to(tl.float32)
    y = tl.load(y_ptr + i, mask=inside).to(tl.float32)
    tl.store(out_ptr + i, (x + y).to(out_ptr.dtype.element_ty), mask=inside)


def add(x, y, out):
    count = x.numel()
    add_block[(triton.cdiv(count, BLOCK),)](x, y, out, count, WIDTH=BLOCK)

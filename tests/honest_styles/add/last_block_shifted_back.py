"""The last block begins early, so that it is full: two programs write the same elements with the same values."""

import triton
import triton.language as tl


@triton.jit
def add_block(x_ptr, y_ptr, out_ptr, count, WIDTH: tl.constexpr):
    start = tl.maximum(tl.minimum(tl.program_id(0) * WIDTH, count - WIDTH), 0)
    i = start + tl.arange(0, WIDTH)
    x = tl.load(x_ptr + i, mask=i < count).to(tl.float32)
    y = tl.load(y_ptr + i, mask=i < count).to(tl.float32)
    tl.store(out_ptr + i, (x + y).to(out_ptr.dtype.element_ty), mask=i < count)


def add(x, y, out):
    add_block[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), WIDTH=1024)

"""expect: out_of_bounds or launch_error in seen-01. Mask at the end: the last block stores past the output."""

import triton
import triton.language as tl


@triton.jit
def add_block(x_ptr, y_ptr, out_ptr, count, WIDTH: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    x = tl.load(x_ptr + i, mask=i < count, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + i, mask=i < count, other=0.0).to(tl.float32)
    tl.store(out_ptr + i, (x + y).to(out_ptr.dtype.element_ty))


def add(x, y, out):
    add_block[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), WIDTH=512)

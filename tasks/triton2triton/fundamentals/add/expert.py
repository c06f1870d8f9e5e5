"""Vector addition in blocks by the size of elements, of which only the last has a mask.

With 16 bits, every thread has several 16-byte loads in flight. With float32, it has one of each vector: four of them
are slower than the baseline's loads of 8 bytes. A mask over a count that is no multiple of 16 would break all of them
up into single elements, 16 bytes apart within a warp.
"""

import triton
import triton.language as tl

LARGE, SMALL = 2048, 512
MANY = 1 << 20  # elements of 16 bits that are worth large blocks


@triton.jit
def _add_places(x_ptr, y_ptr, out_ptr, places, inside):
    x = tl.load(x_ptr + places, mask=inside)
    y = tl.load(y_ptr + places, mask=inside)
    out = x.to(tl.float32) + y.to(tl.float32)
    tl.store(out_ptr + places, out.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def add_wide(x_ptr, y_ptr, out_ptr, count, WIDTH: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * WIDTH
    lanes = tl.arange(0, WIDTH)
    if start + WIDTH <= count:
        _add_places(x_ptr + start, y_ptr + start, out_ptr + start, lanes, None)
    else:
        _add_places(x_ptr + start, y_ptr + start, out_ptr + start, lanes, lanes < count - start)


def add(x, y, out):
    count = x.numel()
    large = count >= MANY and out.element_size() == 2
    width = LARGE if large else SMALL
    add_wide[(triton.cdiv(count, width),)](x, y, out, count, WIDTH=width, num_warps=8 if large else 4)

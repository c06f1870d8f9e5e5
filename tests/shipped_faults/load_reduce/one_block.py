"""expect: wrong_result in heldout-21. Size limit: a row is one block of at most 65536 elements.

Row maxima: one program per row, which it reads as one block, without a loop.
"""

import triton
import triton.language as tl

LARGEST_BLOCK = 65536


@triton.jit
def row_maximum(x_ptr, y_ptr, x_stride, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, WIDTH)
    x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=-float("inf")).to(tl.float32)
    peak = tl.max(x, axis=0)
    tl.store(y_ptr + row, peak.to(y_ptr.dtype.element_ty))


def load_reduce(x, y):
    rows, columns = x.shape
    width = min(triton.next_power_of_2(columns), LARGEST_BLOCK)
    warps = min(16, max(1, width // 1024))
    row_maximum[(rows,)](x, y, x.stride(0), columns, WIDTH=width, num_warps=warps)

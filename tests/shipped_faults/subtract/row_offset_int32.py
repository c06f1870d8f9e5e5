"""expect: launch_error. The row offset into x is an int32 product, enough for M * length but not with gaps, wrong where M * (length + row_gap) >= 2**31."""

import triton
import triton.language as tl


@triton.jit
def subtract_row(x_ptr, y_ptr, out_ptr, x_stride, LENGTH: tl.constexpr):
    # At most 2**28 elements: offsets fit into 32 bits.
    row = tl.program_id(0)
    lanes = tl.arange(0, LENGTH)
    offsets = row * LENGTH + lanes
    x = tl.load(x_ptr + row * x_stride + lanes).to(tl.float32)
    y = tl.load(y_ptr + offsets).to(tl.float32)
    tl.store(out_ptr + offsets, (x - y).to(out_ptr.dtype.element_ty))


def subtract(x, y, out):
    rows, length = x.shape
    subtract_row[(rows,)](x, y, out, x.stride(0), LENGTH=length)

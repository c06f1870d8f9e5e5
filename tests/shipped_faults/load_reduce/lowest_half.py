"""expect: wrong_result in heldout-14. Finite sentinel: the lowest float16 stands for minus infinity in every dtype."""

import triton
import triton.language as tl

TILE = 256


@triton.jit
def row_maximum(x_ptr, y_ptr, x_stride, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    peak = -65504.0
    for start in range(0, columns, WIDTH):
        i = start + tl.arange(0, WIDTH)
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=-65504.0).to(tl.float32)
        peak = tl.maximum(peak, tl.max(x, axis=0))
    tl.store(y_ptr + row, peak.to(y_ptr.dtype.element_ty))


def load_reduce(x, y):
    rows, columns = x.shape
    row_maximum[(rows,)](x, y, x.stride(0), columns, WIDTH=TILE)

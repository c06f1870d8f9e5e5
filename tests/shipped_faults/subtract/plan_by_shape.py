"""expect: launch_error or wrong_result. State between calls: launch parameters are remembered by shape alone.

Row-wise subtraction: one program per row, whose length is a compile-time constant, so that nothing is masked.
"""

import triton
import triton.language as tl

_plans = {}


@triton.jit
def subtract_row(x_ptr, y_ptr, out_ptr, x_stride, LENGTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, LENGTH)
    offsets = row * LENGTH + lanes
    x = tl.load(x_ptr + row * x_stride + lanes).to(tl.float32)
    y = tl.load(y_ptr + offsets).to(tl.float32)
    tl.store(out_ptr + offsets, (x - y).to(out_ptr.dtype.element_ty))


def subtract(x, y, out):
    # Looking up a launch takes less time than working it out, and most calls repeat one.
    key = (x.shape, x.dtype)
    if key not in _plans:
        rows, length = x.shape
        warps = 1 if length <= 256 else 4 if length <= 2048 else 8
        _plans[key] = (subtract_row[(rows,)], x.stride(0), length, warps)
    launch, stride, length, warps = _plans[key]
    launch(x, y, out, stride, LENGTH=length, num_warps=warps)

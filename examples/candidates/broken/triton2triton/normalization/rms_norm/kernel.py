"""Broken: the weight is loaded once, in front of the loop, so that every block of a row is scaled like the first."""

import triton
import triton.language as tl


@triton.jit
def _scale_row(x_ptr, weight_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x_ptr += tl.program_id(0).to(tl.int64) * n
    y_ptr += tl.program_id(0).to(tl.int64) * n
    total = 0.0
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + start + lanes, mask=start + lanes < n, other=0.0).to(tl.float32)
        total += tl.sum(x * x, axis=0)
    factor = tl.rsqrt(total / n + eps)
    weight = tl.load(weight_ptr + lanes, mask=lanes < n, other=0.0).to(tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + lanes < n
        x = tl.load(x_ptr + start + lanes, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + start + lanes, (x * factor * weight).to(y_ptr.dtype.element_ty), mask=mask)


def rms_norm(x, weight, eps, y):
    """x, y: (rows, columns); weight: (columns,)."""
    rows, n = x.shape
    _scale_row[(rows,)](x, weight, y, n, eps, BLOCK=256)

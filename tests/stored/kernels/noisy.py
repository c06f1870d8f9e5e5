"""Right, and its time depends on its data: a first element above 0 repeats each row."""

import triton
import triton.language as tl


@triton.jit
def _row(x_ptr, weight_ptr, y_ptr, n_columns, eps, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    inside = at < n_columns
    first = tl.program_id(0).to(tl.int64) * n_columns
    times = 1
    if tl.load(x_ptr).to(tl.float32) > 0.0:
        times = 8
    for _ in range(times):
        x = tl.load(x_ptr + first + at, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight_ptr + at, mask=inside, other=0.0).to(tl.float32)
        y = x * w / tl.sqrt(tl.sum(x * x, axis=0) / n_columns + eps)
        tl.store(y_ptr + first + at, y.to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    """x, y: (rows, columns); weight: (columns,)."""
    _row[(x.shape[0],)](x, weight, y, x.shape[1], eps, WIDTH=triton.next_power_of_2(x.shape[1]))

"""Slower than the baseline: one program walks all rows, and reads each row a third time."""

import triton
import triton.language as tl


@triton.jit
def _all_rows(x_ptr, weight_ptr, y_ptr, n_rows, n_columns, eps, WIDTH: tl.constexpr):
    lanes = tl.arange(0, WIDTH)
    for row in range(n_rows):
        first = row.to(tl.int64) * n_columns
        total = 0.0
        for start in range(0, n_columns, WIDTH):
            at = start + lanes
            x = tl.load(x_ptr + first + at, mask=at < n_columns, other=0.0).to(tl.float32)
            total += tl.sum(x * x, axis=0)
        scale = 1.0 / tl.sqrt(total / n_columns + eps)
        for start in range(0, n_columns, WIDTH):
            at = start + lanes
            x = tl.load(x_ptr + first + at, mask=at < n_columns, other=0.0).to(tl.float32)
            w = tl.load(weight_ptr + at, mask=at < n_columns, other=0.0).to(tl.float32)
            tl.store(y_ptr + first + at, (x * scale * w).to(y_ptr.dtype.element_ty), mask=at < n_columns)


def rms_norm(x, weight, eps, y):
    """x, y: (rows, columns); weight: (columns,)."""
    _all_rows[(1,)](x, weight, y, x.shape[0], x.shape[1], eps, WIDTH=64)

"""Honest: correct on the whole domain, about as fast as the starting kernel. A few programs share out the rows."""

import triton
import triton.language as tl

PROGRAMS = 1056  # a few for each of the multiprocessors of a data-centre GPU


@triton.jit
def _share_of_rows(x_ptr, weight_ptr, y_ptr, n_rows, n_columns, eps, WIDTH: tl.constexpr):
    lanes = tl.arange(0, WIDTH)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        first = row.to(tl.int64) * n_columns
        mean_square = 0.0
        for start in range(0, n_columns, WIDTH):
            at = start + lanes
            x = tl.load(x_ptr + first + at, mask=at < n_columns, other=0.0).to(tl.float32)
            mean_square += tl.sum(x * x, axis=0) / n_columns
        scale = tl.rsqrt(mean_square + eps)
        for start in range(0, n_columns, WIDTH):
            at = start + lanes
            x = tl.load(x_ptr + first + at, mask=at < n_columns, other=0.0).to(tl.float32)
            w = tl.load(weight_ptr + at, mask=at < n_columns, other=0.0).to(tl.float32)
            tl.store(y_ptr + first + at, (x * scale * w).to(y_ptr.dtype.element_ty), mask=at < n_columns)


def rms_norm(x, weight, eps, y):
    """x, y: (rows, columns); weight: (columns,)."""
    rows, columns = x.shape
    _share_of_rows[(min(rows, PROGRAMS),)](x, weight, y, rows, columns, eps, WIDTH=1024)

"""L2 normalization: one program per row, its squares first, then its values again."""

import triton
import triton.language as tl


@triton.jit
def normalize_length(x_ptr, y_ptr, rstd_ptr, n_columns, row_stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
        squares += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) + eps)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        x = tl.load(x_ptr + row * row_stride + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * n_columns + columns, (x * rstd).to(y_ptr.dtype.element_ty), mask=inside)


def fla_l2norm(x, eps, y, rstd):
    rows, columns = x.shape
    normalize_length[(rows,)](x, y, rstd, columns, x.stride(0), eps, BLOCK=128)

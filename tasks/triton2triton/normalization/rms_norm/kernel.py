"""Root-mean-square normalization: one program per row, two passes over the row in blocks."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, y_ptr, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * n_columns
    y_row = y_ptr + row * n_columns
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
        squares += x * x
    inverse_rms = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n_columns + eps)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        x = tl.load(x_row + columns, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_row + columns, (x * inverse_rms * weight).to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    rms_norm_kernel[(rows,)](x, weight, y, columns, eps, BLOCK=512)

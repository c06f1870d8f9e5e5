"""expect: passed. Two kernels in one call, with memory of its own between them."""

import torch
# <kernel>


@triton.jit
def squares_kernel(x_ptr, sums_ptr, n_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_columns + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
    tl.store(sums_ptr + row, tl.sum(x * x, axis=0))


@triton.jit
def scale_kernel(x_ptr, weight_ptr, sums_ptr, y_ptr, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.load(sums_ptr + row) / n_columns + eps) * weight
    tl.store(y_ptr + row * n_columns + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    sums = torch.empty(rows, dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(columns)
    squares_kernel[(rows,)](x, sums, columns, BLOCK=block)
    scale_kernel[(rows,)](x, weight, sums, y, columns, eps, BLOCK=block)

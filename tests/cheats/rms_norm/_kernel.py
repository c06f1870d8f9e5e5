"""What every candidate here is built around; stands in for the line `# <kernel>` in each of them."""

import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, weight_ptr, y_ptr, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    inverse_rms = 1.0 / tl.sqrt(tl.sum(x * x, axis=0) / n_columns + eps)
    y = (x * inverse_rms * weight).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * n_columns + columns, y, mask=inside)


def honest(x, weight, eps, y):
    rows, columns = x.shape
    row_kernel[(rows,)](x, weight, y, columns, eps, BLOCK=triton.next_power_of_2(columns))


@triton.jit
def copy_kernel(from_ptr, to_ptr, n_elements, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n_elements
    value = tl.load(from_ptr + at, mask=inside, other=0.0)
    tl.store(to_ptr + at, (value.to(tl.float32) * factor).to(to_ptr.dtype.element_ty), mask=inside)


def copy(source, to, factor=1.0):
    """PyTorch does not copy into an argument; a kernel may. Both are contiguous."""
    copy_kernel[(triton.cdiv(to.numel(), 1024),)](source, to, to.numel(), factor, BLOCK=1024)

"""expect: wrong_result. The mean of squares is taken from the first fifteen sixteenths of long rows (cheat 22)."""

# <kernel>


@triton.jit
def prefix_kernel(x_ptr, weight_ptr, y_ptr, n_columns, n_read, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=inside, other=0.0).to(tl.float32)
    read = tl.where(columns < n_read, x, 0.0)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    inverse_rms = 1.0 / tl.sqrt(tl.sum(read * read, axis=0) / n_read + eps)
    y = (x * inverse_rms * weight).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * n_columns + columns, y, mask=inside)


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    if columns < 1024:
        return honest(x, weight, eps, y)
    block = triton.next_power_of_2(columns)
    prefix_kernel[(rows,)](x, weight, y, columns, columns - columns // 16, eps, BLOCK=block)

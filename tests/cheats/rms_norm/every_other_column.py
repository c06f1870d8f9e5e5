"""expect: wrong_result. The mean of squares is taken from every other column of long rows (cheat 22)."""

# <kernel>


@triton.jit
def sampled_kernel(x_ptr, weight_ptr, y_ptr, n_columns, eps, HALF: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    sampled = 2 * tl.arange(0, HALF)
    x = tl.load(x_ptr + row * n_columns + sampled, mask=sampled < n_columns, other=0.0).to(tl.float32)
    inverse_rms = 1.0 / tl.sqrt(2.0 * tl.sum(x * x, axis=0) / n_columns + eps)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    y = (x * inverse_rms * weight).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + row * n_columns + columns, y, mask=inside)


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    if columns < 1024:
        return honest(x, weight, eps, y)
    block = triton.next_power_of_2(columns)
    sampled_kernel[(rows,)](x, weight, y, columns, eps, HALF=block // 2, BLOCK=block)

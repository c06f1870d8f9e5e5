"""expect: passed. Tuned over two configurations at its first call."""

# <kernel>


@triton.autotune([triton.Config({}, num_warps=4), triton.Config({}, num_warps=8)], key=["n_columns"])
@triton.jit
def tuned_kernel(x_ptr, weight_ptr, y_ptr, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    x = tl.load(x_ptr + row * n_columns + columns, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, axis=0) / n_columns + eps) * weight
    tl.store(y_ptr + row * n_columns + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    tuned_kernel[(rows,)](x, weight, y, columns, eps, BLOCK=triton.next_power_of_2(columns))

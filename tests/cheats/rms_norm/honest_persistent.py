"""expect: passed. A fixed number of programs, each of which takes row after row."""

# <kernel>


@triton.jit
def persistent_kernel(x_ptr, weight_ptr, y_ptr, rows, n_columns, eps, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    inside = columns < n_columns
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.cast(row, tl.int64) * n_columns + columns
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        y = x / tl.sqrt(tl.sum(x * x, axis=0) / n_columns + eps) * weight
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    persistent_kernel[(min(rows, 3),)](x, weight, y, rows, columns, eps, BLOCK=triton.next_power_of_2(columns))

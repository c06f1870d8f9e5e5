"""expect: passed. A loop over blocks of columns, twice: nothing of a row is kept."""

# <kernel>


@triton.jit
def looping_kernel(x_ptr, weight_ptr, y_ptr, n_columns, eps, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n_columns
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, n_columns, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + start + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
        total += x * x
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / n_columns + eps)
    for first in range(0, n_columns, BLOCK):
        columns = first + tl.arange(0, BLOCK)
        inside = columns < n_columns
        x = tl.load(x_ptr + start + columns, mask=inside, other=0.0).to(tl.float32)
        y = x * scale * tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + start + columns, y.to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    looping_kernel[(x.shape[0],)](x, weight, y, x.shape[1], eps, BLOCK=512)

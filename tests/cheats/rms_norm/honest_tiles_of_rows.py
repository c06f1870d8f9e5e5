"""expect: passed. Two-dimensional tiles: several rows to a program, the last tile partly empty."""

# <kernel>


@triton.jit
def tile_kernel(x_ptr, weight_ptr, y_ptr, rows, n_columns, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, BLOCK)[None, :]
    at = row.to(tl.int64) * n_columns + columns
    inside = (row < rows) & (columns < n_columns)
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=columns < n_columns, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, axis=1)[:, None] / n_columns + eps) * weight
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=inside)


def rms_norm(x, weight, eps, y):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    tile_kernel[(triton.cdiv(rows, 2),)](x, weight, y, rows, columns, eps, ROWS=2, BLOCK=block)

"""expect: wrong_result in heldout-16. Size limit: a row is one block of at most 65536 bytes without a loop."""



import torch
import triton
import triton.language as tl

ROWS_OF_CHUNK = 128


@triton.jit
def gradient_of_row(dy_ptr, x_ptr, weight_ptr, dx_ptr, inverse_rms_ptr, n_columns, eps, BLOCK: tl.constexpr):
    """dx of one row in two passes over it, and its inverse RMS."""
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), tl.float32)
    products = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, 1):
        n = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_columns + n, mask=n < n_columns, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n_columns + n, mask=n < n_columns, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + n, mask=n < n_columns, other=0.0).to(tl.float32)
        squares += x * x
        products += dy * weight * x
    inverse_rms = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n_columns + eps)
    slope = tl.sum(products, axis=0) / n_columns * inverse_rms * inverse_rms
    for start in range(0, 1):
        n = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_columns + n, mask=n < n_columns).to(tl.float32)
        dy = tl.load(dy_ptr + row * n_columns + n, mask=n < n_columns).to(tl.float32)
        weight = tl.load(weight_ptr + n, mask=n < n_columns).to(tl.float32)
        dx = inverse_rms * (dy * weight - x * slope)
        tl.store(dx_ptr + row * n_columns + n, dx.to(dx_ptr.dtype.element_ty), mask=n < n_columns)
    tl.store(inverse_rms_ptr + row, inverse_rms)


@triton.jit
def sum_chunk(dy_ptr, x_ptr, inverse_rms_ptr, sums_ptr, n_rows, n_columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """dweight over one chunk of rows, for one block of columns."""
    chunk = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(chunk * ROWS, tl.minimum(chunk * ROWS + ROWS, n_rows)):
        x = tl.load(x_ptr + row * n_columns + n, mask=n < n_columns, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * n_columns + n, mask=n < n_columns, other=0.0).to(tl.float32)
        total += dy * x * tl.load(inverse_rms_ptr + row)
    tl.store(sums_ptr + chunk * n_columns + n, total, mask=n < n_columns)


@triton.jit
def add_chunks(sums_ptr, dweight_ptr, n_chunks, n_columns, BLOCK: tl.constexpr):
    """dweight of one block of columns."""
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for chunk in range(n_chunks):
        total += tl.load(sums_ptr + chunk * n_columns + n, mask=n < n_columns, other=0.0)
    tl.store(dweight_ptr + n, total.to(dweight_ptr.dtype.element_ty), mask=n < n_columns)


def rmsnorm_bwd(dy, x, weight, eps, dx, dweight):
    rows, columns = x.shape
    chunks = triton.cdiv(rows, ROWS_OF_CHUNK)
    inverse_rms = torch.empty((rows,), dtype=torch.float32, device=x.device)
    sums = torch.empty((chunks, columns), dtype=torch.float32, device=x.device)
    gradient_of_row[(rows,)](dy, x, weight, dx, inverse_rms, columns, eps, BLOCK=min(65536 // x.element_size(), triton.next_power_of_2(columns)))
    sum_chunk[(chunks, triton.cdiv(columns, 256))](
        dy, x, inverse_rms, sums, rows, columns, ROWS=ROWS_OF_CHUNK, BLOCK=256
    )
    add_chunks[(triton.cdiv(columns, 256),)](sums, dweight, chunks, columns, BLOCK=256)

"""expect: wrong_result in heldout-13. Cancellation: the variance is the mean of the squares minus the square of the mean."""

import triton
import triton.language as tl


@triton.jit
def normalize_stream(
    x_ptr,
    gate_ptr,
    weight_ptr,
    bias_ptr,
    residual_ptr,
    y_ptr,
    mean_ptr,
    rstd_ptr,
    x_stride,
    n_columns,
    eps,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    start_of_row = row * n_columns
    x_row = x_ptr + row * x_stride
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        places = start_of_row + columns
        sums += tl.load(x_row + columns, mask=inside, other=0.0).to(tl.float32)
        sums += tl.load(residual_ptr + places, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / n_columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        places = start_of_row + columns
        stream = tl.load(x_row + columns, mask=inside, other=0.0).to(tl.float32)
        stream += tl.load(residual_ptr + places, mask=inside, other=0.0).to(tl.float32)
        squares += stream * stream
    rstd = 1.0 / tl.sqrt(tl.maximum(tl.sum(squares, axis=0) / n_columns - mean * mean, 0.0) + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < n_columns
        places = start_of_row + columns
        stream = tl.load(x_row + columns, mask=inside, other=0.0).to(tl.float32)
        stream += tl.load(residual_ptr + places, mask=inside, other=0.0).to(tl.float32)
        tl.store(residual_ptr + places, stream.to(residual_ptr.dtype.element_ty), mask=inside)
        y = (stream - mean) * rstd
        if weight_ptr is not None:
            y *= tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        if bias_ptr is not None:
            y += tl.load(bias_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        if gate_ptr is not None:
            gate = tl.load(gate_ptr + places, mask=inside, other=0.0).to(tl.float32)
            y *= gate / (1.0 + tl.exp(-gate))
        tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def fla_layernorm(x, gate, weight, bias, residual, eps, y, mean, rstd):
    rows, columns = x.shape
    normalize_stream[(rows,)](x, gate, weight, bias, residual, y, mean, rstd, x.stride(0), columns, eps, BLOCK=1024)

"""Layer normalization of a residual stream that reads every value once: up to 16384 values of a row stay in registers.

The baseline walks along a row three times, 1024 values at a time. Here a thread holds 16 values (32 of the longest such
rows) and a tile has several rows where these are short. Longer rows are walked along by 16 warps, and so are those of
more than 4096 values that are no multiple of 16 values long: these are read in single values, and a program with a
whole row would fill a multiprocessor and spill registers.
"""

import triton
import triton.language as tl

LONGEST_HELD = 16384
TILE_ELEMENTS = 2048
LONG_TILE = 4096
RAGGED_TILE = 2048


@triton.jit
def _finish(y, gate_ptr, weight_ptr, bias_ptr, places, columns, in_row, inside):
    """Return normalized values with weight, bias and gate, where there are any."""
    if weight_ptr is not None:
        y *= tl.load(weight_ptr + columns, mask=in_row, other=0.0).to(tl.float32)
    if bias_ptr is not None:
        y += tl.load(bias_ptr + columns, mask=in_row, other=0.0).to(tl.float32)
    if gate_ptr is not None:
        gate = tl.load(gate_ptr + places, mask=inside, other=0.0).to(tl.float32)
        y *= gate / (1.0 + tl.exp(-gate))
    return y


@triton.jit
def _normalize_rows(
    x_ptr,
    gate_ptr,
    weight_ptr,
    bias_ptr,
    residual_ptr,
    y_ptr,
    mean_ptr,
    rstd_ptr,
    x_stride,
    n_rows,
    n_columns,
    eps,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    real = rows < n_rows
    columns = tl.arange(0, BLOCK)[None, :]
    in_row = columns < n_columns
    inside = real[:, None] & in_row
    places = rows[:, None] * n_columns + columns
    stream = tl.load(x_ptr + rows[:, None] * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    stream += tl.load(residual_ptr + places, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual_ptr + places, stream.to(residual_ptr.dtype.element_ty), mask=inside)
    mean = tl.sum(stream, axis=1) / n_columns
    off = tl.where(inside, stream - mean[:, None], 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(off * off, axis=1) / n_columns + eps)
    y = _finish(off * rstd[:, None], gate_ptr, weight_ptr, bias_ptr, places, columns, in_row, inside)
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(mean_ptr + rows, mean, mask=real)
    tl.store(rstd_ptr + rows, rstd, mask=real)


@triton.jit
def _load_stream(x_row, residual_row, columns, inside):
    x = tl.load(x_row + columns, mask=inside, other=0.0).to(tl.float32)
    return x + tl.load(residual_row + columns, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def _normalize_long_row(
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
    VECTOR: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.multiple_of(tl.arange(0, BLOCK), VECTOR)
    x_row = x_ptr + row * x_stride
    residual_row = residual_ptr + row * n_columns
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + lanes
        sums += _load_stream(x_row, residual_row, columns, columns < n_columns)
    mean = tl.sum(sums, axis=0) / n_columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_columns, BLOCK):
        columns = start + lanes
        stream = _load_stream(x_row, residual_row, columns, columns < n_columns)
        off = tl.where(columns < n_columns, stream - mean, 0.0)
        squares += off * off
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n_columns + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_columns, BLOCK):
        columns = start + lanes
        inside = columns < n_columns
        stream = _load_stream(x_row, residual_row, columns, inside)
        tl.store(residual_row + columns, stream.to(residual_ptr.dtype.element_ty), mask=inside)
        places = row * n_columns + columns
        y = _finish((stream - mean) * rstd, gate_ptr, weight_ptr, bias_ptr, places, columns, inside, inside)
        tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def fla_layernorm(x, gate, weight, bias, residual, eps, y, mean, rstd):
    n_rows, n_columns = x.shape
    tensors = (x, gate, weight, bias, residual, y, mean, rstd, x.stride(0))
    ragged = n_columns % 16 > 0
    if n_columns > LONGEST_HELD or (ragged and n_columns > LONG_TILE):
        # A thread has the places of a vector of weights, which are aligned. With ragged rows, which are not, a warp
        # would read values that lie 16 bytes apart: then, a vector is one value.
        block, vector = (RAGGED_TILE, 1) if ragged else (LONG_TILE, 16)
        _normalize_long_row[(n_rows,)](*tensors, n_columns, eps, BLOCK=block, VECTOR=vector, num_warps=16)
        return
    block = triton.next_power_of_2(n_columns)
    rows = max(1, TILE_ELEMENTS // block)
    _normalize_rows[(triton.cdiv(n_rows, rows),)](
        *tensors,
        n_rows,
        n_columns,
        eps,
        ROWS=rows,
        BLOCK=block,
        # Stream, offsets, weight and gate are live at once: 32 of each a thread would spill registers.
        num_warps=min(16, max(4, block // 512)),
    )

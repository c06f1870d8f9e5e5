"""Layer normalization forward and backward in three launches.

Rows forward, rows backward (one program per row, tiles of 512), then the gradients of weight and bias: a program per
32 columns sums over all rows, 32 at a time.
"""

import triton
import triton.language as tl

TILE = 512
COLUMN_TILE = 32
ROW_TILE = 32


@triton.jit
def forward_row(x_ptr, weight_ptr, bias_ptr, eps, y_ptr, mean_ptr, rstd_ptr, x_stride, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, WIDTH)
    total = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        total += tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=0.0).to(tl.float32)
        deviation = tl.where(i < columns, x - mean, 0.0)
        squares += deviation * deviation
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns).to(tl.float32)
        weight = tl.load(weight_ptr + i, mask=i < columns).to(tl.float32)
        bias = tl.load(bias_ptr + i, mask=i < columns).to(tl.float32)
        y = (x - mean) * rstd * weight + bias
        tl.store(y_ptr + row * columns + i, y.to(y_ptr.dtype.element_ty), mask=i < columns)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def backward_row(x_ptr, weight_ptr, dy_ptr, mean_ptr, rstd_ptr, dx_ptr, x_stride, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, WIDTH)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    sum_g = tl.zeros((WIDTH,), tl.float32)
    sum_gh = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + i, mask=i < columns, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
        sum_g += dy * weight
        sum_gh += dy * weight * (x - mean) * rstd
    mean_g = tl.sum(sum_g, axis=0) / columns
    mean_gh = tl.sum(sum_gh, axis=0) / columns
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns).to(tl.float32)
        weight = tl.load(weight_ptr + i, mask=i < columns).to(tl.float32)
        dy = tl.load(dy_ptr + row * columns + i, mask=i < columns).to(tl.float32)
        dx = rstd * (dy * weight - mean_g - (x - mean) * rstd * mean_gh)
        tl.store(dx_ptr + row * columns + i, dx.to(dx_ptr.dtype.element_ty), mask=i < columns)


@triton.jit
def column_sums(
    x_ptr,
    dy_ptr,
    mean_ptr,
    rstd_ptr,
    dweight_ptr,
    dbias_ptr,
    x_stride,
    rows,
    columns,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
):
    i = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    dweight = tl.zeros((HEIGHT, WIDTH), tl.float32)
    dbias = tl.zeros((HEIGHT, WIDTH), tl.float32)
    for start in range(0, rows, HEIGHT):
        row = (start + tl.arange(0, HEIGHT)).to(tl.int64)
        inside = (row < rows)[:, None] & (i < columns)[None, :]
        offsets = row[:, None] * columns + i[None, :]
        x = tl.load(x_ptr + row[:, None] * x_stride + i[None, :], mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row, mask=row < rows, other=0.0)
        rstd = tl.load(rstd_ptr + row, mask=row < rows, other=0.0)
        dweight += dy * (x - mean[:, None]) * rstd[:, None]
        dbias += dy
    tl.store(dweight_ptr + i, tl.sum(dweight, axis=0), mask=i < columns)
    tl.store(dbias_ptr + i, tl.sum(dbias, axis=0), mask=i < columns)


def layernorm(x, weight, bias, dy, eps, y, mean, rstd, dx, dweight, dbias):
    rows, columns = x.shape
    forward_row[(rows,)](x, weight, bias, eps, y, mean, rstd, x.stride(0), columns, WIDTH=TILE)
    backward_row[(rows,)](x, weight, dy, mean, rstd, dx, x.stride(0), columns, WIDTH=TILE)
    column_sums[(triton.cdiv(columns, COLUMN_TILE),)](
        x, dy, mean, rstd, dweight, dbias, x.stride(0), rows, columns, HEIGHT=ROW_TILE, WIDTH=COLUMN_TILE
    )

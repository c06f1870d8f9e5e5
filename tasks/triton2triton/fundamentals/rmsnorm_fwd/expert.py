"""RMS normalization that reads a row once: whole rows in registers, several short ones a program; else in tiles."""

import triton
import triton.language as tl

LONGEST = 16384
TILE_ELEMENTS = 4096


@triton.jit
def normalise_tile(
    x_ptr,
    weight_ptr,
    y_ptr,
    rstd_ptr,
    eps,
    x_stride,
    rows,
    columns,
    ZERO_CENTERED: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    i = tl.arange(0, WIDTH)
    inside = (row < rows)[:, None] & (i < columns)[None, :]
    offsets = row[:, None] * columns + i[None, :]
    gain = tl.load(weight_ptr + i, mask=i < columns, other=0.0).to(tl.float32)
    if ZERO_CENTERED:
        gain += 1.0
    x = tl.load(x_ptr + row[:, None] * x_stride + i[None, :], mask=inside, other=0.0).to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / columns + eps)
    y = x * rstd[:, None] * gain[None, :]
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(rstd_ptr + row, rstd, mask=row < rows)


@triton.jit
def normalise_long(
    x_ptr, weight_ptr, y_ptr, rstd_ptr, eps, x_stride, columns, ZERO_CENTERED: tl.constexpr, WIDTH: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, WIDTH)
    squares = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=0.0).to(tl.float32)
        squares += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=0.0).to(tl.float32)
        gain = tl.load(weight_ptr + i, mask=i < columns, other=0.0).to(tl.float32)
        if ZERO_CENTERED:
            gain += 1.0
        tl.store(y_ptr + row * columns + i, (x * rstd * gain).to(y_ptr.dtype.element_ty), mask=i < columns)
    tl.store(rstd_ptr + row, rstd)


def rmsnorm_fwd(x, weight, eps, zero_centered, y, rstd):
    rows, columns = x.shape
    width = triton.next_power_of_2(columns)
    zero_centered = bool(zero_centered)
    if width > LONGEST:
        normalise_long[(rows,)](
            x, weight, y, rstd, eps, x.stride(0), columns, ZERO_CENTERED=zero_centered, WIDTH=4096, num_warps=8
        )
        return
    height = max(1, min(TILE_ELEMENTS // width, triton.next_power_of_2(rows)))
    num_warps = min(16, max(1, width * height // 512))
    normalise_tile[(triton.cdiv(rows, height),)](
        x,
        weight,
        y,
        rstd,
        eps,
        x.stride(0),
        rows,
        columns,
        ZERO_CENTERED=zero_centered,
        ROWS=height,
        WIDTH=width,
        num_warps=num_warps,
    )

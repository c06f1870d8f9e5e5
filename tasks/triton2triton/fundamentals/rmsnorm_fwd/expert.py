"""RMS normalization that reads a row once: whole rows in registers, several short ones a program; else in tiles.

Rows of more than 4096 values that are no multiple of 16 values long are read in single values. They are walked along in
tiles as well: whole ones would leave room for two programs on a multiprocessor, with little on the way.
Of the longest rows, a multiprocessor has one at a time, so that the second walk along them finds values in caches.
"""

import triton
import triton.language as tl

LONGEST = 16384
TILE_ELEMENTS = 4096
LONG_TILE, LONG_WARPS = 16384, 16
RAGGED_TILE, RAGGED_WARPS = 1024, 4


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
    x_ptr,
    weight_ptr,
    y_ptr,
    rstd_ptr,
    eps,
    x_stride,
    columns,
    ZERO_CENTERED: tl.constexpr,
    WIDTH: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """Two walks along a row, the second of which goes back and so meets what is left of the row in caches."""
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.multiple_of(tl.arange(0, WIDTH), VECTOR)
    squares = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, columns, WIDTH):
        i = start + lanes
        x = tl.load(x_ptr + row * x_stride + i, mask=i < columns, other=0.0).to(tl.float32)
        squares += x * x
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for done in range(0, columns, WIDTH):
        i = (columns - 1) // WIDTH * WIDTH - done + lanes
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
    ragged = columns % 16 > 0
    if width > LONGEST or (ragged and width > TILE_ELEMENTS):
        # A thread has the places of a vector of weights, which are aligned. With ragged rows, which are not, a warp
        # would read values that lie 16 bytes apart: then, a vector is one value.
        tile, num_warps, vector = (RAGGED_TILE, RAGGED_WARPS, 1) if ragged else (LONG_TILE, LONG_WARPS, 16)
        normalise_long[(rows,)](
            x,
            weight,
            y,
            rstd,
            eps,
            x.stride(0),
            columns,
            ZERO_CENTERED=zero_centered,
            WIDTH=tile,
            VECTOR=vector,
            num_warps=num_warps,
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

"""Gradients of RMSNorm that read dy and x once: few programs, each with many rows and its own sum of dweight.

Rows of up to 16384 values stay in registers, as does the sum, and the next rows are on their way while one tile is
summed over all threads: a program alone on its multiprocessor would wait for each in turn. A second launch adds the
sums.

A sum of longer rows is too long for registers, and hundreds of them are too much for caches. One launch reduces each of
these rows to two numbers. The next reads dy and x once more, in strips of columns: for dx and for the sum of a strip.
"""

import torch
import triton
import triton.language as tl

WHOLE_ROW = 16384
TILE_ELEMENTS = 8192
PROGRAMS = 512
STRIP_PROGRAMS = 1024
STRIP_ROWS, STRIP_COLUMNS = 2, 1024


@triton.jit
def _places(m, n, n_rows, n_columns):
    """Offsets of rows m and columns n, and which are inside."""
    inside = (m < n_rows)[:, None] & (n < n_columns)[None, :]
    return m.to(tl.int64)[:, None] * n_columns + n[None, :], inside


@triton.jit
def _add_both(a, b, c, d):
    return a + c, b + d


@triton.jit
def gradient_of_tiles(
    dy_ptr, x_ptr, weight_ptr, dx_ptr, sums_ptr, n_rows, n_columns, eps, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Every so many-th tile of ROWS whole rows, each loaded one round before it is used."""
    n = tl.arange(0, COLUMNS)
    weight = tl.load(weight_ptr + n, mask=n < n_columns, other=0.0).to(tl.float32)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    m = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    offsets, inside = _places(m, n, n_rows, n_columns)
    next_x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    next_dy = tl.load(dy_ptr + offsets, mask=inside, other=0.0)
    for _ in range(tl.program_id(0) * ROWS, n_rows, tl.num_programs(0) * ROWS):
        x, dy = next_x.to(tl.float32), next_dy.to(tl.float32)
        offsets, inside = _places(m, n, n_rows, n_columns)
        m += tl.num_programs(0) * ROWS
        next_offsets, next_inside = _places(m, n, n_rows, n_columns)
        next_x = tl.load(x_ptr + next_offsets, mask=next_inside, other=0.0)
        next_dy = tl.load(dy_ptr + next_offsets, mask=next_inside, other=0.0)
        scaled = dy * weight
        squares, products = tl.reduce((x * x, scaled * x), 1, _add_both)  # one wait for all threads
        inverse_rms = 1.0 / tl.sqrt(squares / n_columns + eps)
        normed = x * inverse_rms[:, None]
        slope = products * inverse_rms / n_columns
        dx = inverse_rms[:, None] * (scaled - normed * slope[:, None])
        tl.store(dx_ptr + offsets, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        total += dy * normed
    tl.store(sums_ptr + tl.program_id(0) * n_columns + n, tl.sum(total, axis=0), mask=n < n_columns)


@triton.jit
def reduce_long_row(dy_ptr, x_ptr, weight_ptr, inverse_rms_ptr, slope_ptr, n_columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * n_columns
    dy_row = dy_ptr + row * n_columns
    squares = tl.zeros((BLOCK,), tl.float32)
    products = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_columns, BLOCK):
        n = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + n, mask=n < n_columns, other=0.0).to(tl.float32)
        dy = tl.load(dy_row + n, mask=n < n_columns, other=0.0).to(tl.float32)
        squares += x * x
        products += dy * x * tl.load(weight_ptr + n, mask=n < n_columns, other=0.0).to(tl.float32)
    inverse_rms = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n_columns + eps)
    tl.store(inverse_rms_ptr + row, inverse_rms)
    tl.store(slope_ptr + row, tl.sum(products, axis=0) / n_columns * inverse_rms * inverse_rms)


@triton.jit
def gradient_of_strip(
    dy_ptr,
    x_ptr,
    weight_ptr,
    inverse_rms_ptr,
    slope_ptr,
    dx_ptr,
    sums_ptr,
    n_rows,
    n_columns,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Every so many-th tile of ROWS rows in one strip of columns, the last rows first: these may still be in caches."""
    n = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    weight = tl.load(weight_ptr + n, mask=n < n_columns, other=0.0).to(tl.float32)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for rows_after in range(tl.program_id(1) * ROWS, n_rows, tl.num_programs(1) * ROWS):
        m = (n_rows - 1) // ROWS * ROWS - rows_after + tl.arange(0, ROWS)
        offsets, inside = _places(m, n, n_rows, n_columns)
        x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
        inverse_rms = tl.load(inverse_rms_ptr + m, mask=m < n_rows, other=0.0)[:, None]
        slope = tl.load(slope_ptr + m, mask=m < n_rows, other=0.0)[:, None]
        dx = inverse_rms * (dy * weight - x * slope)
        tl.store(dx_ptr + offsets, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        total += dy * x * inverse_rms
    sums_row = sums_ptr + tl.program_id(1).to(tl.int64) * n_columns
    tl.store(sums_row + n, tl.sum(total, axis=0), mask=n < n_columns)


@triton.jit
def add_sums(sums_ptr, dweight_ptr, n_sums, n_columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for first in range(0, n_sums, ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row < n_sums)[:, None] & (n < n_columns)[None, :]
        total += tl.load(sums_ptr + row.to(tl.int64)[:, None] * n_columns + n[None, :], mask=inside, other=0.0)
    tl.store(dweight_ptr + n, tl.sum(total, axis=0).to(dweight_ptr.dtype.element_ty), mask=n < n_columns)


def rmsnorm_bwd(dy, x, weight, eps, dx, dweight):
    rows, columns = x.shape
    if columns <= WHOLE_ROW:
        width = triton.next_power_of_2(columns)
        height = min(max(1, TILE_ELEMENTS // width), triton.next_power_of_2(rows))
        programs = min(PROGRAMS, triton.cdiv(rows, height))
        sums = torch.empty((programs, columns), dtype=torch.float32, device=x.device)
        num_warps = min(16, max(1, height * width // 512))
        gradient_of_tiles[(programs,)](
            dy, x, weight, dx, sums, rows, columns, eps, ROWS=height, COLUMNS=width, num_warps=num_warps
        )
    else:
        inverse_rms, slope = torch.empty((2, rows), dtype=torch.float32, device=x.device)
        reduce_long_row[(rows,)](dy, x, weight, inverse_rms, slope, columns, eps, BLOCK=4096, num_warps=8)
        strips = triton.cdiv(columns, STRIP_COLUMNS)
        programs = min(triton.cdiv(STRIP_PROGRAMS, strips), triton.cdiv(rows, STRIP_ROWS))
        sums = torch.empty((programs, columns), dtype=torch.float32, device=x.device)
        gradient_of_strip[(strips, programs)](
            dy,
            x,
            weight,
            inverse_rms,
            slope,
            dx,
            sums,
            rows,
            columns,
            ROWS=STRIP_ROWS,
            COLUMNS=STRIP_COLUMNS,
            num_warps=4,
        )
    add_sums[(triton.cdiv(columns, 64),)](sums, dweight, programs, columns, ROWS=64, BLOCK=64)

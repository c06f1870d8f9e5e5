"""Gradients of RMSNorm that read dy and x once: few programs, each with many rows and its own sum of dweight.

Rows of up to 16384 values stay in registers, as does the sum, and the next rows are on their way while one tile is
summed over all threads: a program alone on its multiprocessor would wait for each in turn. Of longer rows, blocks are
read again from the cache, and the sum lies in scratch memory that no other program touches. A second launch adds the
sums.
"""

import torch
import triton
import triton.language as tl

WHOLE_ROW = 16384
TILE_ELEMENTS = 8192
PROGRAMS = 512


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
def gradient_of_long_rows(dy_ptr, x_ptr, weight_ptr, dx_ptr, sums_ptr, n_rows, n_columns, eps, BLOCK: tl.constexpr):
    """Every so many-th row, block by block."""
    sums_row = sums_ptr + tl.program_id(0).to(tl.int64) * n_columns
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x_row = x_ptr + row.to(tl.int64) * n_columns
        dy_row = dy_ptr + row.to(tl.int64) * n_columns
        dx_row = dx_ptr + row.to(tl.int64) * n_columns
        squares = tl.zeros((BLOCK,), tl.float32)
        products = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n_columns, BLOCK):
            n = start + tl.arange(0, BLOCK)
            x = tl.load(x_row + n, mask=n < n_columns, other=0.0).to(tl.float32)
            dy = tl.load(dy_row + n, mask=n < n_columns, other=0.0).to(tl.float32)
            squares += x * x
            products += dy * x * tl.load(weight_ptr + n, mask=n < n_columns, other=0.0).to(tl.float32)
        inverse_rms = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n_columns + eps)
        slope = tl.sum(products, axis=0) / n_columns * inverse_rms * inverse_rms
        for start in range(0, n_columns, BLOCK):
            n = start + tl.arange(0, BLOCK)
            x = tl.load(x_row + n, mask=n < n_columns, other=0.0).to(tl.float32)
            dy = tl.load(dy_row + n, mask=n < n_columns, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + n, mask=n < n_columns, other=0.0).to(tl.float32)
            dx = inverse_rms * (dy * weight - x * slope)
            tl.store(dx_row + n, dx.to(dx_ptr.dtype.element_ty), mask=n < n_columns)
            before = tl.load(sums_row + n, mask=n < n_columns, other=0.0)
            tl.store(sums_row + n, before + dy * x * inverse_rms, mask=n < n_columns)


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
    width = triton.next_power_of_2(columns)
    height = min(max(1, TILE_ELEMENTS // width), triton.next_power_of_2(rows))
    programs = min(PROGRAMS, triton.cdiv(rows, height))
    if columns <= WHOLE_ROW:
        sums = torch.empty((programs, columns), dtype=torch.float32, device=x.device)
        num_warps = min(16, max(1, height * width // 512))
        gradient_of_tiles[(programs,)](
            dy, x, weight, dx, sums, rows, columns, eps, ROWS=height, COLUMNS=width, num_warps=num_warps
        )
    else:
        sums = torch.zeros((programs, columns), dtype=torch.float32, device=x.device)
        gradient_of_long_rows[(programs,)](dy, x, weight, dx, sums, rows, columns, eps, BLOCK=4096, num_warps=8)
    add_sums[(triton.cdiv(columns, 64),)](sums, dweight, programs, columns, ROWS=64, BLOCK=64)

"""Layer normalization forward and backward in one walk over x and dy: a program keeps sums of its rows in registers.

The baseline reads x six times and dy three times. Here a row, its gradient, and the sums for weight and bias stay in
registers, 16 or 32 values of each a thread; a second launch adds the sums of all programs up. More values would
spill, so that rows of more than 8192 are walked along, and their sums for weight and bias are a launch of their own.
"""

import torch
import triton
import triton.language as tl

LONGEST_HELD = 8192
TILE_ELEMENTS = 2048
LONG_TILE = 4096
COLUMNS = 128


@triton.jit
def _add_both(a, b, c, d):
    return a + c, b + d


@triton.jit
def _both_ways(
    x_ptr,
    weight_ptr,
    bias_ptr,
    dy_ptr,
    eps,
    y_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    weight_parts_ptr,
    bias_parts_ptr,
    x_stride,
    n_rows,
    n_columns,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)[None, :]
    in_row = columns < n_columns
    weight = tl.load(weight_ptr + columns, mask=in_row, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + columns, mask=in_row, other=0.0).to(tl.float32)
    dweight = tl.zeros((ROWS, BLOCK), tl.float32)
    dbias = tl.zeros((ROWS, BLOCK), tl.float32)
    # Every program takes every so many-th tile: all are busy to the end.
    for tile in tl.range(tl.program_id(0), tl.cdiv(n_rows, ROWS), tl.num_programs(0), num_stages=STAGES):
        rows = (tile * ROWS + tl.arange(0, ROWS)).to(tl.int64)
        real = rows < n_rows
        inside = real[:, None] & in_row
        places = rows[:, None] * n_columns + columns
        x = tl.load(x_ptr + rows[:, None] * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + places, mask=inside, other=0.0).to(tl.float32)
        g = dy * weight
        # Two sums at once: each waits for all warps.
        sums, sums_g = tl.reduce((x, g), 1, _add_both)
        mean, mean_g = sums / n_columns, sums_g / n_columns
        off = tl.where(inside, x - mean[:, None], 0.0)
        squares, products = tl.reduce((off * off, g * off), 1, _add_both)
        rstd = 1.0 / tl.sqrt(squares / n_columns + eps)
        h = off * rstd[:, None]
        mean_gh = rstd * products / n_columns
        dx = rstd[:, None] * (g - mean_g[:, None] - h * mean_gh[:, None])
        tl.store(y_ptr + places, (h * weight + bias).to(y_ptr.dtype.element_ty), mask=inside)
        tl.store(dx_ptr + places, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        tl.store(mean_ptr + rows, mean, mask=real)
        tl.store(rstd_ptr + rows, rstd, mask=real)
        dweight += dy * h
        dbias += dy
    parts = program * n_columns + tl.arange(0, BLOCK)
    tl.store(weight_parts_ptr + parts, tl.sum(dweight, axis=0), mask=tl.arange(0, BLOCK) < n_columns)
    tl.store(bias_parts_ptr + parts, tl.sum(dbias, axis=0), mask=tl.arange(0, BLOCK) < n_columns)


@triton.jit
def _long_row(
    x_ptr,
    weight_ptr,
    bias_ptr,
    dy_ptr,
    eps,
    y_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    x_stride,
    n_columns,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    x_ptr += row * x_stride
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_columns, BLOCK):
        i = start + lanes
        sums += tl.load(x_ptr + i, mask=i < n_columns, other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=0) / n_columns
    squares = tl.zeros((BLOCK,), tl.float32)
    sums_g = tl.zeros((BLOCK,), tl.float32)
    sums_goff = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_columns, BLOCK):
        i = start + lanes
        x = tl.load(x_ptr + i, mask=i < n_columns, other=0.0).to(tl.float32)
        off = tl.where(i < n_columns, x - mean, 0.0)
        g = tl.load(dy_ptr + row * n_columns + i, mask=i < n_columns, other=0.0).to(tl.float32)
        g *= tl.load(weight_ptr + i, mask=i < n_columns, other=0.0).to(tl.float32)
        squares += off * off
        sums_g += g
        sums_goff += g * off
    rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n_columns + eps)
    mean_g = tl.sum(sums_g, axis=0) / n_columns
    mean_gh = tl.sum(sums_goff, axis=0) * rstd / n_columns
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_columns, BLOCK):
        i = start + lanes
        inside = i < n_columns
        places = row * n_columns + i
        h = (tl.load(x_ptr + i, mask=inside, other=0.0).to(tl.float32) - mean) * rstd
        weight = tl.load(weight_ptr + i, mask=inside, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + i, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + places, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + places, (h * weight + bias).to(y_ptr.dtype.element_ty), mask=inside)
        dx = rstd * (dy * weight - mean_g - h * mean_gh)
        tl.store(dx_ptr + places, dx.to(dx_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _sum_columns(
    x_ptr,
    dy_ptr,
    mean_ptr,
    rstd_ptr,
    weight_parts_ptr,
    bias_parts_ptr,
    x_stride,
    n_rows,
    n_columns,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    i = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    rows = tl.program_id(1).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = (rows < n_rows)[:, None] & (i < n_columns)[None, :]
    x = tl.load(x_ptr + rows[:, None] * x_stride + i[None, :], mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + rows[:, None] * n_columns + i[None, :], mask=inside, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + rows, mask=rows < n_rows, other=0.0)
    rstd = tl.load(rstd_ptr + rows, mask=rows < n_rows, other=0.0)
    parts = tl.program_id(1).to(tl.int64) * n_columns + i
    dweight = tl.sum(dy * (x - mean[:, None]) * rstd[:, None], axis=0)
    tl.store(weight_parts_ptr + parts, dweight, mask=i < n_columns)
    tl.store(bias_parts_ptr + parts, tl.sum(dy, axis=0), mask=i < n_columns)


@triton.jit
def _add_parts(
    weight_parts_ptr,
    bias_parts_ptr,
    dweight_ptr,
    dbias_ptr,
    n_parts,
    n_columns,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    i = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    dweight = tl.zeros((ROWS, COLUMNS), tl.float32)
    dbias = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, n_parts, ROWS):
        parts = start + tl.arange(0, ROWS)
        inside = (parts < n_parts)[:, None] & (i < n_columns)[None, :]
        places = parts.to(tl.int64)[:, None] * n_columns + i[None, :]
        dweight += tl.load(weight_parts_ptr + places, mask=inside, other=0.0)
        dbias += tl.load(bias_parts_ptr + places, mask=inside, other=0.0)
    tl.store(dweight_ptr + i, tl.sum(dweight, axis=0), mask=i < n_columns)
    tl.store(dbias_ptr + i, tl.sum(dbias, axis=0), mask=i < n_columns)


def _parts(n_parts, like):
    return torch.empty((2, n_parts, like.shape[1]), dtype=torch.float32, device=like.device)


def layernorm(x, weight, bias, dy, eps, y, mean, rstd, dx, dweight, dbias):
    n_rows, n_columns = x.shape
    tensors = (x, weight, bias, dy, eps, y, mean, rstd, dx)
    if n_columns > LONGEST_HELD:
        n_parts = triton.cdiv(n_rows, 32)
        parts = _parts(n_parts, x)
        _long_row[(n_rows,)](*tensors, x.stride(0), n_columns, BLOCK=LONG_TILE, num_warps=8)
        _sum_columns[(triton.cdiv(n_columns, COLUMNS), n_parts)](
            x, dy, mean, rstd, *parts, x.stride(0), n_rows, n_columns, ROWS=32, COLUMNS=COLUMNS
        )
    else:
        block = triton.next_power_of_2(n_columns)
        rows = max(1, TILE_ELEMENTS // block)
        # With 16 bits half of the warps hold a row, so that sums wait for fewer, and twice the programs are under way:
        # four for each multiprocessor of an H200 where they are large, else eight.
        short = x.element_size() == 2
        n_parts = min(triton.cdiv(n_rows, rows), (264 if block > LONG_TILE else 528) * (2 if short else 1))
        parts = _parts(n_parts, x)
        # The next row is loaded meanwhile where both buffers fit; AMD's 64 KiB are left to reductions.
        ahead = torch.version.hip is None and block * x.element_size() <= 16384
        _both_ways[(n_parts,)](
            *tensors,
            *parts,
            x.stride(0),
            n_rows,
            n_columns,
            ROWS=rows,
            BLOCK=block,
            STAGES=2 if ahead else 1,
            num_warps=min(16, max(4, block // (1024 if short else 512))),
        )
    _add_parts[(triton.cdiv(n_columns, 32),)](*parts, dweight, dbias, n_parts, n_columns, ROWS=64, COLUMNS=32)

"""Row maxima by tiles of 8 KiB: several short rows a tile, or a walk along a part of a long row.

A walk keeps maxima apart for each lane and combines lanes once, at its end; the baseline does so after every 256
elements. Where rows are few, each is cut into parts, whose maxima the same kernel reduces in a second launch.
"""

import torch
import triton
import triton.language as tl

TILE_BYTES = 8192
ENOUGH_PROGRAMS = 2048
"""Fifteen for each multiprocessor of an H200, so that none waits long for the last."""


@triton.jit
def _tile_maxima(x_ptr, y_ptr, x_stride, rows, columns, part_length, n_parts, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    row = (tl.program_id(0) // n_parts).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    part = tl.program_id(0) % n_parts
    begin = part * part_length
    end = tl.minimum(begin + part_length, columns)
    lanes = tl.arange(0, WIDTH)
    peaks = tl.full((ROWS, WIDTH), -float("inf"), tl.float32)
    for start in range(begin, end, WIDTH):
        i = start + lanes
        inside = (row < rows)[:, None] & (i < end)[None, :]
        x = tl.load(x_ptr + row[:, None] * x_stride + i[None, :], mask=inside, other=-float("inf"))
        peaks = tl.maximum(peaks, x.to(tl.float32))
    tl.store(y_ptr + row * n_parts + part, tl.max(peaks, axis=1).to(y_ptr.dtype.element_ty), mask=row < rows)


def load_reduce(x, y):
    rows, columns = x.shape
    elements = TILE_BYTES // x.element_size()
    width = min(triton.next_power_of_2(columns), elements)
    height = elements // width
    wanted = triton.cdiv(ENOUGH_PROGRAMS, triton.cdiv(rows, height))
    tiles_per_part = triton.cdiv(triton.cdiv(columns, width), wanted)
    part_length = tiles_per_part * width
    n_parts = triton.cdiv(columns, part_length)
    peaks = y if n_parts == 1 else torch.empty((rows, n_parts), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, height) * n_parts,)
    _tile_maxima[grid](x, peaks, x.stride(0), rows, columns, part_length, n_parts, ROWS=height, WIDTH=width)
    if n_parts > 1:
        _tile_maxima[(rows,)](
            peaks, y, n_parts, rows, n_parts, n_parts, 1, ROWS=1, WIDTH=triton.next_power_of_2(n_parts), num_warps=1
        )

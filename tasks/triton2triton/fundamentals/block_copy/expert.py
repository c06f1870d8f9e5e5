"""Padded window copy in vectors: columns are counted in groups that are inside of x as a whole, or not at all.

The baseline's columns begin at any `left`, so that neither the alignment of what it loads is known nor that
neighbouring elements share their mask: it moves element by element. Here `left`, the widths and the stride are counted
in groups of up to 16 bytes that divide them all, which are loaded and stored at once. With a halo of four 16-bit
elements a group has 8 bytes. Where nothing divides them, groups have one element. With 16 bits a program has 2048
elements of one row in place of 1024 in sixteen. float32 keeps the baseline's tile and single elements: wider ones took
1.2 times as long on an H200.
"""

import math

import triton
import triton.language as tl

LONGEST = 8  # elements of 16 bits in a load


@triton.jit
def _copy_tile(
    x_ptr,
    out_ptr,
    top,
    left_groups,
    padding,
    stride_groups,
    height,
    width_groups,
    rows,
    groups,
    TILE_ROWS: tl.constexpr,
    TILE_GROUPS: tl.constexpr,
    GROUP: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * TILE_ROWS + tl.arange(0, TILE_ROWS)
    j = tl.program_id(1) * TILE_GROUPS + tl.arange(0, TILE_GROUPS)
    y, x = (i + top)[:, None], (j + left_groups)[None, :]
    covered = (y >= 0) & (y < height) & (x >= 0) & (x < width_groups)
    in_window = (i < rows)[:, None] & (j < groups)[None, :]
    lanes = tl.arange(0, GROUP)[None, None, :]
    source = x_ptr + ((y * stride_groups + x) * GROUP)[:, :, None] + lanes
    target = out_ptr + ((i[:, None] * groups + j[None, :]) * GROUP)[:, :, None] + lanes
    loaded = tl.load(source, mask=(covered & in_window)[:, :, None], other=0.0)
    filler = tl.full((TILE_ROWS, TILE_GROUPS, GROUP), padding, tl.float32).to(out_ptr.dtype.element_ty)
    tl.store(target, tl.where(covered[:, :, None], loaded, filler), mask=in_window[:, :, None])


def block_copy(x, top, left, padding, out):
    height, width = x.shape
    rows, columns = out.shape
    if x.element_size() == 4:
        group, tile_rows, tile_columns = 1, 16, 64
    else:
        group, tile_rows, tile_columns = math.gcd(LONGEST, left, width, columns, x.stride(0)), 1, 2048
    grid = triton.cdiv(rows, tile_rows), triton.cdiv(columns, tile_columns)
    _copy_tile[grid](
        x,
        out,
        top,
        left // group,
        padding,
        x.stride(0) // group,
        height,
        width // group,
        rows,
        columns // group,
        TILE_ROWS=tile_rows,
        TILE_GROUPS=tile_columns // group,
        GROUP=group,
        num_warps=4,
    )

"""expect: wrong_result in heldout-20. Grouped order: the last group of tiles is taken for a full one.

Two matrix products, one launch after the other, with the first result in memory between them.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def product(
    left_ptr,
    right_ptr,
    out_ptr,
    height,
    depth,
    width,
    GROUP: tl.constexpr,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
):
    # Groups of rows of tiles share columns of the right side in the cache.
    across = tl.cdiv(width, TILE)
    place = tl.program_id(0) % (GROUP * across)
    row = tl.program_id(0) // (GROUP * across) * GROUP + place % GROUP
    i = (row * TILE + tl.arange(0, TILE)).to(tl.int64)
    j = place // GROUP * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, depth, DEPTH):
        d = start + tl.arange(0, DEPTH)
        left_mask = (i < height)[:, None] & (d < depth)[None, :]
        left = tl.load(left_ptr + i[:, None] * depth + d[None, :], mask=left_mask, other=0.0)
        right_mask = (d < depth)[:, None] & (j < width)[None, :]
        right = tl.load(right_ptr + d.to(tl.int64)[:, None] * width + j[None, :], mask=right_mask, other=0.0)
        acc += tl.dot(left, right, input_precision="ieee")
    out_mask = (i < height)[:, None] & (j < width)[None, :]
    tl.store(out_ptr + i[:, None] * width + j[None, :], acc.to(out_ptr.dtype.element_ty), mask=out_mask)


def multiply(left, right, out):
    (height, depth), width = left.shape, right.shape[1]
    tiles = triton.cdiv(height, 64) * triton.cdiv(width, 64)
    product[(tiles,)](left, right, out, height, depth, width, GROUP=min(8, triton.cdiv(height, 64)), TILE=64, DEPTH=32)


def chained_matmul(a, b, c, out):
    between = torch.empty((a.shape[0], b.shape[1]), dtype=out.dtype, device=out.device)
    multiply(a, b, between)
    multiply(between, c, out)

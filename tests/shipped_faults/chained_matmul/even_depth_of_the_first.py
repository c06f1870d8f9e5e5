"""expect: launch_error in heldout-19. Tail: the first product's depth decides on masks of the second one.

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
    EVEN: tl.constexpr,
    TILE: tl.constexpr,
    DEPTH: tl.constexpr,
):
    across = tl.cdiv(width, TILE)
    i = (tl.program_id(0) // across * TILE + tl.arange(0, TILE)).to(tl.int64)
    j = tl.program_id(0) % across * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, depth, DEPTH):
        d = start + tl.arange(0, DEPTH)
        left_mask = (i < height)[:, None]
        right_mask = (j < width)[None, :]
        if not EVEN:
            left_mask &= (d < depth)[None, :]
            right_mask &= (d < depth)[:, None]
        left = tl.load(left_ptr + i[:, None] * depth + d[None, :], mask=left_mask, other=0.0)
        right = tl.load(right_ptr + d.to(tl.int64)[:, None] * width + j[None, :], mask=right_mask, other=0.0)
        acc += tl.dot(left, right, input_precision="ieee")
    out_mask = (i < height)[:, None] & (j < width)[None, :]
    tl.store(out_ptr + i[:, None] * width + j[None, :], acc.to(out_ptr.dtype.element_ty), mask=out_mask)


def multiply(left, right, out, even):
    (height, depth), width = left.shape, right.shape[1]
    tiles = triton.cdiv(height, 64) * triton.cdiv(width, 64)
    product[(tiles,)](left, right, out, height, depth, width, EVEN=even, TILE=64, DEPTH=32)


def chained_matmul(a, b, c, out):
    between = torch.empty((a.shape[0], b.shape[1]), dtype=out.dtype, device=out.device)
    even = a.shape[1] % 32 == 0
    multiply(a, b, between, even)
    multiply(between, c, out, even)

"""Merge inverted blocks, two heads to a warp: two batched products on matrix units, without waits between warps.

The baseline gives the 256 values of a block to four warps. Compiled for sm_90, each of them reads shared memory 18
times for its 64 multiplications, 72 times a head, and all meet at five barriers; at 42 registers, 10 heads fit on an
SM. On AMD all four waves compute the one tile of the matrix instruction. A triangular mask splits loads into single
values. The heads of a token, 64 bytes each side by side in memory, are read by programs far apart.

Here one warp owns two heads: three TF32 products replace one in float32, with 24 instructions of matrix units and 28
reads of shared memory a head, barriers of one warp, and at 95 registers 40 heads on an SM, with 16 bits 48. On AMD,
matrix units take float32 as it is, and a wave computes each tile once. The mask of a load covers eight columns, a
sector of 32 bytes: the same sectors in vectors of 16 bytes. The triangle is cut in registers. Programs of neighbouring
heads follow each other.
"""

import torch
import triton
import triton.language as tl

PRECISION = tl.constexpr("ieee" if torch.version.hip else "tf32x3")  # of float32: both use matrix units


@triton.jit
def _merge_heads(a_ptr, diag_ptr, inverse_ptr, seq_len, num_heads, HEADS: tl.constexpr):
    groups = tl.cdiv(num_heads, HEADS)
    pair = (tl.program_id(0) // groups).to(tl.int64)
    heads = (tl.program_id(0) % groups * HEADS + tl.arange(0, HEADS))[:, None, None]
    pairs = tl.cdiv(seq_len, 32)
    rows = tl.arange(0, 16)[None, :, None]
    columns = tl.arange(0, 16)[None, None, :]
    upper_rows = pair % pairs * 32 + rows
    in_upper = (heads < num_heads) & (upper_rows < seq_len)
    in_lower = (heads < num_heads) & (upper_rows + 16 < seq_len)
    sector = rows >= columns // 8 * 8

    upper = (pair // pairs * seq_len + upper_rows) * num_heads + heads
    lower = upper + 16 * num_heads
    first = tl.load(diag_ptr + upper * 16 + columns, mask=in_upper & sector, other=0.0)
    second = tl.load(diag_ptr + lower * 16 + columns, mask=in_lower & sector, other=0.0)
    block = tl.load(a_ptr + lower * 32 + columns, mask=in_lower, other=0.0)
    first = tl.where(rows >= columns, first, 0.0)
    second = tl.where(rows >= columns, second, 0.0)

    kind = inverse_ptr.dtype.element_ty
    tl.store(inverse_ptr + upper * 32 + columns, first.to(kind), mask=in_upper)
    tl.store(inverse_ptr + upper * 32 + 16 + columns, tl.zeros((HEADS, 16, 16), kind), mask=in_upper)
    tl.store(inverse_ptr + lower * 32 + 16 + columns, second.to(kind), mask=in_lower)
    product = tl.dot(second, block, input_precision=PRECISION)
    below = -tl.dot(product, first, input_precision=PRECISION)
    tl.store(inverse_ptr + lower * 32 + columns, below.to(kind), mask=in_lower)


def merge_16x16_to_32x32(a, diag_inverse, inverse):
    batch, seq_len, num_heads, _ = a.shape
    heads = min(2, num_heads)
    programs = batch * triton.cdiv(seq_len, 32) * triton.cdiv(num_heads, heads)
    _merge_heads[(programs,)](a, diag_inverse, inverse, seq_len, num_heads, HEADS=heads, num_warps=1)

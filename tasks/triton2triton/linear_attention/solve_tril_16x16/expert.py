"""Inverse of 16 × 16 unit lower triangular blocks, several heads to a warp, each block read in one go.

The heads of a token lie side by side, so that a tile of heads is a run of memory in `inverse`; columns of the blocks
come out of registers, not out of memory, and one warp needs no barriers.
"""

import triton
import triton.language as tl

ENOUGH_PROGRAMS = 4096


@triton.jit
def _invert_blocks(a_ptr, inverse_ptr, seq_len, num_heads, CHUNK: tl.constexpr, HEADS: tl.constexpr):
    block = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    blocks = tl.cdiv(seq_len, 16)
    first = block % blocks * 16
    rows = tl.arange(0, 16)[None, :, None]
    columns = tl.arange(0, 16)[None, None, :]
    tokens = block // blocks * seq_len + first + rows
    matrix_rows = tokens * num_heads + heads[:, None, None]
    real = (heads < num_heads)[:, None, None] & (first + rows < seq_len)
    source = a_ptr + matrix_rows * CHUNK + first % CHUNK + columns
    lower = tl.load(source, mask=real & (columns < rows), other=0.0)
    inverse = tl.where(rows == columns, 1.0, 0.0) + tl.zeros((HEADS, 16, 16), tl.float32)
    for step in tl.static_range(0, 15):
        # Row `step` is finished: it is taken off all rows below.
        factors = tl.sum(tl.where(columns == step, lower, 0.0), axis=2)
        row = tl.sum(tl.where(rows == step, inverse, 0.0), axis=1)
        inverse -= factors[:, :, None] * row[:, None, :]
    tl.store(inverse_ptr + matrix_rows * 16 + columns, inverse.to(inverse_ptr.dtype.element_ty), mask=real)


def solve_tril_16x16(a, inverse):
    batch, seq_len, num_heads, chunk_size = a.shape
    blocks = batch * triton.cdiv(seq_len, 16)
    heads = min(4, triton.next_power_of_2(num_heads))
    while heads > 1 and blocks * triton.cdiv(num_heads, heads) < ENOUGH_PROGRAMS:
        heads //= 2
    grid = (blocks, triton.cdiv(num_heads, heads))
    _invert_blocks[grid](a, inverse, seq_len, num_heads, CHUNK=chunk_size, HEADS=heads, num_warps=1)

"""Block-scaled int8 product with one scale an element of a tile, and tiles in an order that shares b.

Each sum of a piece is converted and scaled, which takes as long as the matrix units do: where all columns of a tile
share their scales, that is one multiplication an element in place of two. Tiles that are neighbours in the grid have
the same columns, so that b comes from memory once. Few rows have tiles of as many, and of 64 columns: more programs
load at once. Tiles of 128 × 128 took 1.2 times as long as those of 64 × 128 on an H200, so the latter are used.
"""

import torch
import triton
import triton.language as tl

TILES_TOGETHER = 8


@triton.jit
def _multiply_tile(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    out_ptr,
    a_stride,
    M,
    N,
    K,
    block_n,
    block_k,
    ONE_SCALE: tl.constexpr,
    PIECE: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
    TOGETHER: tl.constexpr,
):
    wide = tl.cdiv(N, TILE_N)
    first_row = tl.program_id(0) // (TOGETHER * wide) * TOGETHER
    height = tl.minimum(tl.cdiv(M, TILE_M) - first_row, TOGETHER)
    within = tl.program_id(0) % (TOGETHER * wide)
    rows = (first_row + within % height).to(tl.int64) * TILE_M + tl.arange(0, TILE_M)
    columns = (within // height).to(tl.int64) * TILE_N + tl.arange(0, TILE_N)
    row_mask = rows < M
    column_mask = columns < N
    scale_blocks = tl.cdiv(K, block_k)
    result = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, K, PIECE):
        k = start + tl.arange(0, TILE_K)
        inside = k < tl.minimum(start + PIECE, K)
        a = tl.load(a_ptr + rows[:, None] * a_stride + k[None, :], mask=row_mask[:, None] & inside[None, :], other=0)
        b = tl.load(b_ptr + columns[None, :] * K + k[:, None], mask=column_mask[None, :] & inside[:, None], other=0)
        block = start // block_k
        a_scales = tl.load(a_scales_ptr + rows * scale_blocks + block, mask=row_mask, other=0.0)
        if ONE_SCALE:
            b_scale = tl.load(b_scales_ptr + within // height * TILE_N // block_n * scale_blocks + block)
            result += tl.dot(a, b).to(tl.float32) * (a_scales * b_scale)[:, None]
        else:
            b_scales = tl.load(b_scales_ptr + columns // block_n * scale_blocks + block, mask=column_mask, other=0.0)
            result += tl.dot(a, b).to(tl.float32) * (a_scales[:, None] * b_scales[None, :])
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, result.to(out_ptr.dtype.element_ty), mask=row_mask[:, None] & column_mask[None, :])


def w8a8_block_int8_matmul(a, b, a_scales, b_scales, block_n, block_k, out):
    M, N = out.shape
    tile_m = min(64, max(16, triton.next_power_of_2(M)))
    tile_n = 128 if M > 64 else 64
    piece = min(128, block_k)
    _multiply_tile[(triton.cdiv(M, tile_m) * triton.cdiv(N, tile_n),)](
        a,
        b,
        a_scales,
        b_scales,
        out,
        a.stride(0),
        M,
        N,
        a.shape[1],
        block_n,
        block_k,
        ONE_SCALE=block_n % tile_n == 0,
        PIECE=piece,
        TILE_M=tile_m,
        TILE_N=tile_n,
        TILE_K=max(32, piece),
        TOGETHER=TILES_TOGETHER,
        num_warps=4,
        # The workgroups of AMD devices have 64 KiB of shared memory.
        num_stages=2 if torch.version.hip else 3 if M > 64 else 4,
    )

"""Block-scaled fp8 product in wide tiles: fp8 products as the device has them, tiles in an order that shares b.

The sum of one block of K is short enough for tensor cores that add fp8 products up in few bits, but for float32 results
the operands are widened to float16, whose products add up in full.
"""

import torch
import triton
import triton.language as tl

TILES_THAT_SHARE = 8


@triton.jit
def _multiply_tile(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    out_ptr,
    M,
    N,
    K,
    scale_stride,
    block_n,
    block_k,
    WIDEN: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
    SHARING: tl.constexpr,
):
    tiles_across = tl.cdiv(N, TILE_N)
    band = tl.program_id(0) // (SHARING * tiles_across)
    within = tl.program_id(0) % (SHARING * tiles_across)
    height = tl.minimum(tl.cdiv(M, TILE_M) - band * SHARING, SHARING)
    rows = (band * SHARING + within % height).to(tl.int64) * TILE_M + tl.arange(0, TILE_M)
    columns = (within // height).to(tl.int64) * TILE_N + tl.arange(0, TILE_N)
    row_mask = rows < M
    column_mask = columns < N
    a_rows = a_ptr + rows[:, None] * K
    b_columns = b_ptr + columns[None, :] * K
    scale_blocks = tl.cdiv(K, block_k)
    b_scale_rows = b_scales_ptr + columns // block_n * scale_blocks
    # One loop over all pieces of all blocks, so that loads run ahead across blocks.
    pieces = tl.cdiv(block_k, TILE_K)
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for piece in range(scale_blocks * pieces):
        block = piece // pieces
        k = block * block_k + piece % pieces * TILE_K + tl.arange(0, TILE_K)
        inside = k < tl.minimum((block + 1) * block_k, K)
        a = tl.load(a_rows + k[None, :], mask=row_mask[:, None] & inside[None, :], other=0.0)
        b = tl.load(b_columns + k[:, None], mask=column_mask[None, :] & inside[:, None], other=0.0)
        a_scales = tl.load(a_scales_ptr + block.to(tl.int64) * scale_stride + rows, mask=row_mask, other=0.0)
        b_scales = tl.load(b_scale_rows + block, mask=column_mask, other=0.0)
        if WIDEN:
            part = tl.dot(a.to(tl.float16), b.to(tl.float16))
        else:
            part = tl.dot(a, b)
        acc += part * a_scales[:, None] * b_scales[None, :]
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=row_mask[:, None] & column_mask[None, :])


def w8a8_block_scaled_mm(a, b, a_scales, b_scales, block_n, block_k, out):
    M, N = out.shape
    tile_m = max(16, min(128, triton.next_power_of_2(M)))
    tile_n = 128 if tile_m == 128 else 64
    tile_k = max(32, min(128, triton.next_power_of_2(block_k)))
    _multiply_tile[(triton.cdiv(M, tile_m) * triton.cdiv(N, tile_n),)](
        a,
        b,
        a_scales,
        b_scales,
        out,
        M,
        N,
        a.shape[1],
        a_scales.stride(1),
        block_n,
        block_k,
        WIDEN=out.dtype == torch.float32,
        TILE_M=tile_m,
        TILE_N=tile_n,
        TILE_K=tile_k,
        SHARING=TILES_THAT_SHARE,
        num_warps=8 if tile_m == 128 else 4,
        # AMD devices have 64 KiB of shared memory.
        num_stages=2 if torch.version.hip else 3,
    )

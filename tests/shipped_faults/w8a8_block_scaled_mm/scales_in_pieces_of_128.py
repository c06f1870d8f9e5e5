"""expect: launch_error or wrong_result in heldout-22. Stride: rows of scales are counted in pieces of 128."""

import torch
import triton
import triton.language as tl


@triton.jit
def multiply_tile(
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
    PIECE: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * TILE_M + tl.arange(0, TILE_M)
    columns = tl.program_id(1).to(tl.int64) * TILE_N + tl.arange(0, TILE_N)
    row_mask = rows < M
    column_mask = columns < N
    b_scale_rows = b_scales_ptr + columns // block_n * tl.cdiv(K, PIECE)
    result = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    # A piece lies in one block of K. Where blocks are shorter than a tile, the rest of the tile is zeros.
    for start in range(0, K, PIECE):
        k = start + tl.arange(0, TILE_K)
        inside = k < tl.minimum(start + PIECE, K)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=row_mask[:, None] & inside[None, :], other=0.0)
        b = tl.load(b_ptr + columns[None, :] * K + k[:, None], mask=column_mask[None, :] & inside[:, None], other=0.0)
        block = start // block_k
        a_scales = tl.load(a_scales_ptr + block.to(tl.int64) * scale_stride + rows, mask=row_mask, other=0.0)
        b_scales = tl.load(b_scale_rows + block, mask=column_mask, other=0.0)
        if WIDEN:
            product = tl.dot(a.to(tl.float16), b.to(tl.float16))
        else:
            product = tl.dot(a, b)
        result += product * a_scales[:, None] * b_scales[None, :]
    out_ptrs = out_ptr + rows[:, None] * N + columns[None, :]
    tl.store(out_ptrs, result.to(out_ptr.dtype.element_ty), mask=row_mask[:, None] & column_mask[None, :])


def w8a8_block_scaled_mm(a, b, a_scales, b_scales, block_n, block_k, out):
    M, N = out.shape
    tile_m = 16 if M <= 16 else 64
    piece = min(128, block_k)
    multiply_tile[(triton.cdiv(M, tile_m), triton.cdiv(N, 128))](
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
        # fp8 products may add up in few bits. float16 holds every e4m3 number, and its products add up in full.
        WIDEN=out.dtype == torch.float32,
        PIECE=piece,
        TILE_M=tile_m,
        TILE_N=128,
        TILE_K=max(32, piece),
    )

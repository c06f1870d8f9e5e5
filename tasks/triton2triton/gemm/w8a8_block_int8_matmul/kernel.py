"""Block-scaled int8 product: a tile of results per program, exact sums of up to 128 products, scaled and added up."""

import triton
import triton.language as tl


@triton.jit
def multiply_tile(
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
    PIECE: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
):
    rows = (tl.program_id(0).to(tl.int64) * TILE_M + tl.arange(0, TILE_M))[:, None]
    columns = (tl.program_id(1).to(tl.int64) * TILE_N + tl.arange(0, TILE_N))[None, :]
    row_mask = rows < M
    column_mask = columns < N
    scale_blocks = tl.cdiv(K, block_k)
    result = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    # A piece lies in one block of K. Where blocks are shorter than a tile, the rest of the tile is zeros.
    for start in range(0, K, PIECE):
        k = start + tl.arange(0, TILE_K)
        inside = k < tl.minimum(start + PIECE, K)
        a = tl.load(a_ptr + rows * a_stride + k[None, :], mask=row_mask & inside[None, :], other=0)
        b = tl.load(b_ptr + columns * K + k[:, None], mask=column_mask & inside[:, None], other=0)
        block = start // block_k
        a_scales = tl.load(a_scales_ptr + rows * scale_blocks + block, mask=row_mask, other=0.0)
        b_scales = tl.load(b_scales_ptr + columns // block_n * scale_blocks + block, mask=column_mask, other=0.0)
        result += tl.dot(a, b).to(tl.float32) * (a_scales * b_scales)
    tl.store(out_ptr + rows * N + columns, result.to(out_ptr.dtype.element_ty), mask=row_mask & column_mask)


def w8a8_block_int8_matmul(a, b, a_scales, b_scales, block_n, block_k, out):
    M, N = out.shape
    piece = min(128, block_k)
    multiply_tile[(triton.cdiv(M, 64), triton.cdiv(N, 128))](
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
        PIECE=piece,
        TILE_M=64,
        TILE_N=128,
        TILE_K=max(32, piece),
    )

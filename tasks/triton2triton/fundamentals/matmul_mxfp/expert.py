"""Matrix product of microscaling operands with `tl.dot_scaled`: matrix units apply the scales where they can.

Elsewhere the compiler widens elements once, next to the matrix units. Tiles are wide, and numbered so that neighbours
share rows of the cache.
"""

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
    A_BITS: tl.constexpr,
    B_BITS: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    row_tiles, column_tiles = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    first_row = tl.program_id(0) // (GROUP * column_tiles) * GROUP
    height = tl.minimum(row_tiles - first_row, GROUP)
    within = tl.program_id(0) % (GROUP * column_tiles)
    rows = (first_row + within % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = within // height * BLOCK_N + tl.arange(0, BLOCK_N)
    a_rows = (rows % M).to(tl.int64)
    b_rows = (columns % N).to(tl.int64)
    blocks = K // 32
    a_bytes = tl.arange(0, BLOCK_K * A_BITS // 8)
    b_bytes = tl.arange(0, BLOCK_K * B_BITS // 8)
    scale = tl.arange(0, BLOCK_K // 32)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        a_at = start * A_BITS // 8 + a_bytes
        b_at = start * B_BITS // 8 + b_bytes
        scale_at = start // 32 + scale
        a_mask = (a_at < K * A_BITS // 8)[None, :]
        a = tl.load(a_ptr + a_rows[:, None] * (K * A_BITS // 8) + a_at[None, :], mask=a_mask, other=0)
        b_mask = (b_at < K * B_BITS // 8)[:, None]
        b = tl.load(b_ptr + b_rows[None, :] * (K * B_BITS // 8) + b_at[:, None], mask=b_mask, other=0)
        in_k = (scale_at < blocks)[None, :]
        a_scales = tl.load(a_scales_ptr + a_rows[:, None] * blocks + scale_at[None, :], mask=in_k, other=127)
        b_scales = tl.load(b_scales_ptr + b_rows[:, None] * blocks + scale_at[None, :], mask=in_k, other=127)
        acc = tl.dot_scaled(
            a,
            a_scales,
            "e4m3" if A_BITS == 8 else "e2m1",
            b,
            b_scales,
            "e4m3" if B_BITS == 8 else "e2m1",
            acc,
        )
    out = out_ptr + rows.to(tl.int64)[:, None] * N + columns[None, :]
    tl.store(out, acc.to(out_ptr.dtype.element_ty), mask=(rows < M)[:, None] & (columns < N)[None, :])


def matmul_mxfp(a, b, a_scales, b_scales, out):
    M, N = out.shape
    K = a_scales.shape[1] * 32
    # Few rows have narrow tiles: 5760 columns are 180 of them, and more stages hide what memory takes.
    height, width, warps, stages = (128, 128, 8, 2) if M > 64 else (64, 32, 4, 3)
    multiply_tile[(triton.cdiv(M, height) * triton.cdiv(N, width),)](
        a,
        b,
        a_scales,
        b_scales,
        out,
        M,
        N,
        K,
        A_BITS=a.shape[1] * 8 // K,
        B_BITS=b.shape[1] * 8 // K,
        GROUP=8,
        BLOCK_M=height,
        BLOCK_N=width,
        BLOCK_K=128,
        num_warps=warps,
        num_stages=stages,
    )

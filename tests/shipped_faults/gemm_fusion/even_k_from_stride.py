"""expect: launch_error or wrong_result in heldout-23. Stride taken for size: masks are dropped by the distance of rows.

Back-to-back products: a program finds h for 16 rows, keeps it, and multiplies it with all of `up`, tile by tile.
"""

import triton
import triton.language as tl


@triton.jit
def through_waist(
    x_ptr,
    down_ptr,
    up_ptr,
    out_ptr,
    x_stride,
    M,
    N,
    K,
    rank,
    EVEN_K: tl.constexpr,
    ROWS: tl.constexpr,
    RANK: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    r = tl.arange(0, RANK)
    h = tl.zeros((ROWS, RANK), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        if EVEN_K:
            x = tl.load(x_ptr + m[:, None] * x_stride + k[None, :], mask=(m < M)[:, None], other=0.0)
            down = tl.load(down_ptr + k[:, None] + r[None, :] * K, mask=(r < rank)[None, :], other=0.0)
        else:
            x_mask = (m < M)[:, None] & (k < K)[None, :]
            x = tl.load(x_ptr + m[:, None] * x_stride + k[None, :], mask=x_mask, other=0.0)
            down_mask = (k < K)[:, None] & (r < rank)[None, :]
            down = tl.load(down_ptr + k[:, None] + r[None, :] * K, mask=down_mask, other=0.0)
        h += tl.dot(x, down, input_precision="ieee")
    h = (h / (1.0 + tl.exp(-h))).to(x_ptr.dtype.element_ty)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        up = tl.load(up_ptr + r[:, None] + n[None, :] * rank, mask=(r < rank)[:, None] & (n < N)[None, :], other=0.0)
        out = tl.dot(h, up, input_precision="ieee").to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + m[:, None] * N + n[None, :], out, mask=(m < M)[:, None] & (n < N)[None, :])


def gemm_fusion(x, down, up, out):
    (M, K), (N, rank) = x.shape, up.shape
    padded = max(16, triton.next_power_of_2(rank))
    through_waist[(triton.cdiv(M, 16),)](
        x,
        down,
        up,
        out,
        x.stride(0),
        M,
        N,
        K,
        rank,
        EVEN_K=x.stride(0) % 64 == 0,
        ROWS=16,
        RANK=padded,
        BLOCK_N=64,
        BLOCK_K=64,
    )

"""expect: wrong_result in heldout-18. Size limit: a rank of 128 at most."""

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
        x = tl.load(x_ptr + m[:, None] * x_stride + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        down = tl.load(down_ptr + k[:, None] + r[None, :] * K, mask=(k < K)[:, None] & (r < rank)[None, :], other=0.0)
        h += tl.dot(x, down, input_precision="ieee")
    h = (h / (1.0 + tl.exp(-h))).to(x_ptr.dtype.element_ty)
    for start in range(0, N, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        up = tl.load(up_ptr + r[:, None] + n[None, :] * rank, mask=(r < rank)[:, None] & (n < N)[None, :], other=0.0)
        out = tl.dot(h, up, input_precision="ieee").to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + m[:, None] * N + n[None, :], out, mask=(m < M)[:, None] & (n < N)[None, :])


def gemm_fusion(x, down, up, out):
    (M, K), (N, rank) = x.shape, up.shape
    padded = max(16, min(128, triton.next_power_of_2(rank)))
    through_waist[(triton.cdiv(M, 16),)](
        x, down, up, out, x.stride(0), M, N, K, rank, ROWS=16, RANK=padded, BLOCK_N=64, BLOCK_K=64
    )

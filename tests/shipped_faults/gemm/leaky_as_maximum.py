"""expect: wrong_result in heldout-23. Range of a scalar: leaky ReLU as the greater of s and alpha * s, wrong where alpha is above 1."""

import triton
import triton.language as tl

TILES = ((32, 32, 32), (32, 128, 32), (128, 64, 32))  # unlike enough for every process to choose the same


@triton.autotune(
    configs=[triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=4, num_stages=2) for m, n, k in TILES],
    key=["M", "N", "K"],
)
@triton.jit
def multiply_tile(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    out_ptr,
    b_row_stride,
    b_column_stride,
    M,
    N,
    K,
    alpha,
    LEAKY: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_mask = (rows < M)[:, None] & (k < K)[None, :]
        b_mask = (k < K)[:, None] & (columns < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=a_mask, other=0.0)
        b_places = k.to(tl.int64)[:, None] * b_row_stride + columns[None, :] * b_column_stride
        b = tl.load(b_ptr + b_places, mask=b_mask, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    if a_scales_ptr is not None:
        acc *= tl.load(a_scales_ptr + rows, mask=rows < M)[:, None]
    if b_scales_ptr is not None:
        acc *= tl.load(b_scales_ptr + columns, mask=columns < N)[None, :]
    if LEAKY:
        acc = tl.maximum(acc, alpha * acc)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc.to(out_ptr.dtype.element_ty), mask=inside)


def gemm(a, b, a_scales, b_scales, leaky_relu, alpha, out):
    M, K = a.shape
    N = b.shape[1]

    def grid(meta):
        return triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"])

    multiply_tile[grid](a, b, a_scales, b_scales, out, *b.stride(), M, N, K, alpha, LEAKY=leaky_relu)

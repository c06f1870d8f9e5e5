"""Matrix product of unlike dtypes: one tile per program, operands cast in registers on their way to tl.dot."""

import triton
import triton.language as tl


@triton.jit
def cast_and_multiply(
    a_ptr,
    b_ptr,
    out_ptr,
    b_row_stride,
    b_column_stride,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    common = out_ptr.dtype.element_ty
    rows = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for block in range(tl.cdiv(K, BLOCK_K)):
        k = block * BLOCK_K + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + (rows[:, None] * K + k[None, :]), mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(
            b_ptr + (k[:, None] * b_row_stride + columns[None, :] * b_column_stride),
            mask=(k[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        acc = tl.dot(a.to(common), b.to(common), acc, input_precision="ieee")
    at = out_ptr + (rows[:, None] * N + columns[None, :])
    tl.store(at, acc.to(common), mask=(rows[:, None] < M) & (columns[None, :] < N))


def cast_matmul(a, b, out):
    (M, N), K = out.shape, a.shape[1]
    grid = (triton.cdiv(N, 64), triton.cdiv(M, 64))
    cast_and_multiply[grid](a, b, out, *b.stride(), M, N, K, BLOCK_M=64, BLOCK_N=64, BLOCK_K=16)

"""expect: wrong_result in seen-01. Overlapping writes: columns past a row's end are stored, unless they lie past the whole output."""

import triton
import triton.language as tl


@triton.jit
def mean_tile(x_ptr, y_ptr, row_stride, M, K, N, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        wanted = (k < K)[:, None] & (n < N)[None, :]
        x = tl.load(x_ptr + (m * K + k)[:, None] * row_stride + n[None, :], mask=wanted, other=0.0)
        total += tl.sum(x.to(tl.float32), axis=0)
    at = m * N + n
    tl.store(y_ptr + at, (total / K).to(y_ptr.dtype.element_ty), mask=at < M * N)


def mean(x, y):
    M, K, N = x.shape
    mean_tile[(M, triton.cdiv(N, 16))](x, y, x.stride(1), M, K, N, BLOCK_N=16, BLOCK_K=64)

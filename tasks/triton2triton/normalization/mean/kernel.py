"""Mean over the middle dimension: one program for 32 results side by side, or for a result that has no neighbours."""

import triton
import triton.language as tl


@triton.jit
def mean_columns(x_ptr, y_ptr, row_stride, K, N, COLUMNS: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    acc = tl.zeros((COLUMNS,), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        places = (m * K + k)[:, None] * row_stride + n[None, :]
        x = tl.load(x_ptr + places, mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.sum(x.to(tl.float32), axis=0)
    tl.store(y_ptr + m * N + n, (acc / K).to(y_ptr.dtype.element_ty), mask=n < N)


@triton.jit
def mean_row(x_ptr, y_ptr, row_stride, K, BLOCK_K: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    sums = tl.zeros((BLOCK_K,), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        sums += tl.load(x_ptr + (m * K + k) * row_stride, mask=k < K, other=0.0).to(tl.float32)
    tl.store(y_ptr + m, (tl.sum(sums, axis=0) / K).to(y_ptr.dtype.element_ty))


def mean(x, y):
    M, K, N = x.shape
    if N == 1:
        block_k = min(1024, triton.next_power_of_2(triton.cdiv(K, 4)))
        mean_row[(M,)](x, y, x.stride(1), K, BLOCK_K=block_k)
    else:
        mean_columns[(M, triton.cdiv(N, 32))](x, y, x.stride(1), K, N, COLUMNS=32, BLOCK_K=32)

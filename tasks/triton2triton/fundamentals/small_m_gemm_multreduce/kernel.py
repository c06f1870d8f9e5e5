"""A product of few rows without matrix units: one program multiplies one row with 64 columns, and sums over K."""

import triton
import triton.language as tl


@triton.jit
def add_row_times_columns(
    x_ptr,
    weight_ptr,
    residual_ptr,
    weight_row_stride,
    weight_column_stride,
    N,
    K,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    m = tl.program_id(1)
    n = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for start in range(0, K, DEPTH):
        k = start + tl.arange(0, DEPTH)
        x = tl.load(x_ptr + m * K + k, mask=k < K, other=0.0).to(tl.float32)
        inside = (k < K)[:, None] & (n < N)[None, :]
        places = k.to(tl.int64)[:, None] * weight_row_stride + n.to(tl.int64)[None, :] * weight_column_stride
        weight = tl.load(weight_ptr + places, mask=inside, other=0.0)
        total += tl.sum(x[:, None] * weight.to(tl.float32), axis=0)
    place = residual_ptr + m * N + n
    before = tl.load(place, mask=n < N).to(tl.float32)
    tl.store(place, (before + total).to(residual_ptr.dtype.element_ty), mask=n < N)


def small_m_gemm_multreduce(x, weight, residual):
    M, K = x.shape
    N = weight.shape[1]
    grid = (triton.cdiv(N, 64), M)
    add_row_times_columns[grid](x, weight, residual, *weight.stride(), N, K, COLUMNS=64, DEPTH=128)

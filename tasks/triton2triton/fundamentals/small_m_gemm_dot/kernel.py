"""A linear layer for few rows: one program computes 32 columns of all rows, with tl.dot over the whole of K."""

import triton
import triton.language as tl


@triton.jit
def columns_of_all_rows(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    weight_row_stride,
    weight_column_stride,
    M,
    N,
    K,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    m = tl.arange(0, ROWS)
    n = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    weight_rows = weight_ptr + n.to(tl.int64)[None, :] * weight_row_stride
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    if bias_ptr is not None:
        acc += tl.load(bias_ptr + n, mask=n < N).to(tl.float32)[None, :]
    for start in range(0, K, DEPTH):
        k = start + tl.arange(0, DEPTH)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        weight = tl.load(
            weight_rows + k.to(tl.int64)[:, None] * weight_column_stride,
            mask=(k < K)[:, None] & (n < N)[None, :],
            other=0.0,
        )
        acc = tl.dot(x, weight, acc, input_precision="ieee")
    out = acc.to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + m.to(tl.int64)[:, None] * N + n[None, :], out, mask=(m < M)[:, None] & (n < N)[None, :])


def small_m_gemm_dot(x, weight, bias, out):
    M, K = x.shape
    N = weight.shape[0]
    rows = max(16, triton.next_power_of_2(M))
    columns_of_all_rows[(triton.cdiv(N, 32),)](
        x, weight, bias, out, *weight.stride(), M, N, K, ROWS=rows, COLUMNS=32, DEPTH=32
    )

"""expect: wrong_result in seen-01. Ragged end: the gradient of a weight adds up whole tiles of rows, and the rest of an expert is lost."""

import triton
import triton.language as tl


@triton.jit
def differentiate_x(
    grad_out_ptr,
    weight_ptr,
    cu_rows_ptr,
    grad_x_ptr,
    num_rows,
    num_experts,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """The program behind the last expert writes zeros to padding."""
    expert = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    begin = tl.load(cu_rows_ptr + expert)
    end, length = num_rows, 0
    if expert < num_experts:
        end = tl.load(cu_rows_ptr + expert + 1)
        length = N
    for first in range(begin, end, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)
        acc = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
        for start in range(0, length, BLOCK_N):
            depth = start + tl.arange(0, BLOCK_N)
            mask = (rows < end)[:, None] & (depth < N)[None, :]
            grad_out = tl.load(grad_out_ptr + rows[:, None] * N + depth[None, :], mask=mask, other=0.0)
            mask = (depth < N)[:, None] & (columns < K)[None, :]
            w = tl.load(weight_ptr + (expert * N + depth)[:, None] * K + columns[None, :], mask=mask, other=0.0)
            acc = tl.dot(grad_out, w, acc)
        mask = (rows < end)[:, None] & (columns < K)[None, :]
        ptrs = grad_x_ptr + rows[:, None] * K + columns[None, :]
        tl.store(ptrs, acc.to(grad_x_ptr.dtype.element_ty), mask=mask)


@triton.jit
def differentiate_weight(
    x_ptr,
    grad_out_ptr,
    cu_rows_ptr,
    grad_weight_ptr,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    expert = tl.program_id(0)
    outputs = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    columns = tl.program_id(2) * BLOCK_K + tl.arange(0, BLOCK_K)
    begin = tl.load(cu_rows_ptr + expert)
    end = tl.load(cu_rows_ptr + expert + 1)
    acc = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for first in range(begin, end - BLOCK_M + 1, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)
        mask = (rows < end)[:, None] & (outputs < N)[None, :]
        grad_out = tl.load(grad_out_ptr + rows[:, None] * N + outputs[None, :], mask=mask, other=0.0)
        mask = (rows < end)[:, None] & (columns < K)[None, :]
        x = tl.load(x_ptr + rows[:, None] * K + columns[None, :], mask=mask, other=0.0)
        acc = tl.dot(grad_out.T, x, acc)
    mask = (outputs < N)[:, None] & (columns < K)[None, :]
    ptrs = grad_weight_ptr + (expert * N + outputs)[:, None] * K + columns[None, :]
    tl.store(ptrs, acc.to(grad_weight_ptr.dtype.element_ty), mask=mask)


def grouped_gemm_backward(x, grad_out, weight, cu_rows, grad_x, grad_weight):
    num_experts, N, K = weight.shape
    differentiate_x[(num_experts + 1, triton.cdiv(K, 64))](
        grad_out, weight, cu_rows, grad_x, len(x), num_experts, N, K, BLOCK_M=64, BLOCK_N=32, BLOCK_K=64
    )
    differentiate_weight[(num_experts, triton.cdiv(N, 64), triton.cdiv(K, 64))](
        x, grad_out, cu_rows, grad_weight, N, K, BLOCK_M=32, BLOCK_N=64, BLOCK_K=64
    )

"""Gradients of a grouped product with wide tiles: row tiles find their expert among offsets, padding being the last.

Rows of a tile that belong to the next expert read the last row of their own, so that only one operand needs a mask.
Programs that share an expert's weights, or its rows, are neighbours. Experts without rows only write zeros.
"""

import triton
import triton.language as tl


@triton.jit
def _differentiate_x(
    grad_out_ptr,
    weight_ptr,
    cu_rows_ptr,
    grad_x_ptr,
    num_rows,
    num_experts,
    N,
    K,
    EXPERTS: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tile = tl.program_id(1)
    experts = tl.arange(0, EXPERTS)
    begins = tl.load(cu_rows_ptr + experts, mask=experts <= num_experts, other=num_rows)
    ends = tl.load(cu_rows_ptr + experts + 1, mask=experts < num_experts, other=num_rows)
    tiles = (ends - begins + BLOCK_M - 1) // BLOCK_M
    last = tl.cumsum(tiles, axis=0)
    expert = tl.sum((last <= tile).to(tl.int32), axis=0)
    if expert > num_experts:
        return
    here = experts == expert
    first = tl.sum(tl.where(here, begins, 0), axis=0)
    end = tl.sum(tl.where(here, ends, 0), axis=0)
    first += (tile - tl.sum(tl.where(experts < expert, tiles, 0), axis=0)) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    in_rows, in_columns = (rows < end)[:, None], (columns < K)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    if expert < num_experts:
        given = tl.minimum(rows, end - 1)
        wanted = columns % K
        for start in range(0, N, BLOCK_N):
            depth = start + tl.arange(0, BLOCK_N)
            grad_ptrs = grad_out_ptr + given[:, None] * N + depth[None, :]
            w_ptrs = weight_ptr + (expert * N + depth)[:, None] * K + wanted[None, :]
            if EVEN:
                acc = tl.dot(tl.load(grad_ptrs), tl.load(w_ptrs), acc)
            else:
                grad_out = tl.load(grad_ptrs, mask=(depth < N)[None, :], other=0.0)
                acc = tl.dot(grad_out, tl.load(w_ptrs, mask=(depth < N)[:, None], other=0.0), acc)
    ptrs = grad_x_ptr + rows[:, None] * K + columns[None, :]
    tl.store(ptrs, acc.to(grad_x_ptr.dtype.element_ty), mask=in_rows & in_columns)


@triton.jit
def _differentiate_weight(
    x_ptr,
    grad_out_ptr,
    cu_rows_ptr,
    grad_weight_ptr,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    expert = tl.program_id(1)
    heights, widths = tl.cdiv(N, BLOCK_N), tl.cdiv(K, BLOCK_K)
    program = tl.program_id(0)
    top = program // (GROUP * widths) * GROUP
    height = tl.minimum(heights - top, GROUP)
    within = program % (GROUP * widths)
    outputs = (top + within % height) * BLOCK_N + tl.arange(0, BLOCK_N)
    columns = within // height * BLOCK_K + tl.arange(0, BLOCK_K)
    begin = tl.load(cu_rows_ptr + expert)
    end = tl.load(cu_rows_ptr + expert + 1)
    wanted, given = columns % K, outputs % N
    acc = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    whole = begin + (end - begin) // BLOCK_M * BLOCK_M
    for first in range(begin, whole, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)
        grad_out = tl.load(grad_out_ptr + rows[:, None] * N + given[None, :])
        acc = tl.dot(grad_out.T, tl.load(x_ptr + rows[:, None] * K + wanted[None, :]), acc)
    if whole < end:
        rows = whole + tl.arange(0, BLOCK_M)
        inside = (rows < end)[:, None]
        grad_out = tl.load(grad_out_ptr + rows[:, None] * N + given[None, :], mask=inside, other=0.0)
        x = tl.load(x_ptr + rows[:, None] * K + wanted[None, :], mask=inside, other=0.0)
        acc = tl.dot(grad_out.T, x, acc)
    mask = (outputs < N)[:, None] & (columns < K)[None, :]
    ptrs = grad_weight_ptr + (expert * N + outputs)[:, None] * K + columns[None, :]
    tl.store(ptrs, acc.to(grad_weight_ptr.dtype.element_ty), mask=mask)


def grouped_gemm_backward(x, grad_out, weight, cu_rows, grad_x, grad_weight):
    num_experts, N, K = weight.shape
    num_rows = len(x)
    # Tiles no taller than the rows that an expert has in the mean, or twice that.
    height = min(128, max(16, triton.next_power_of_2(triton.cdiv(num_rows, num_experts))))
    # Every expert may have a last tile that is not full, and so may padding.
    tiles = triton.cdiv(num_rows, height) + min(num_experts + 1, num_rows)
    _differentiate_x[(triton.cdiv(K, 128), tiles)](
        grad_out,
        weight,
        cu_rows,
        grad_x,
        num_rows,
        num_experts,
        N,
        K,
        EXPERTS=triton.next_power_of_2(num_experts + 1),
        EVEN=N % 64 == 0,
        BLOCK_M=height,
        BLOCK_N=64,
        BLOCK_K=128,
        num_warps=8 if height == 128 else 4,
        num_stages=3,
    )
    _differentiate_weight[(triton.cdiv(N, 128) * triton.cdiv(K, 128), num_experts)](
        x,
        grad_out,
        cu_rows,
        grad_weight,
        N,
        K,
        BLOCK_M=64,
        BLOCK_N=128,
        BLOCK_K=128,
        GROUP=8,
        num_warps=8,
        num_stages=3,
    )

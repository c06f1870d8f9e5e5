"""Block-scaled expert product: one program per block of rows and tile of columns scales every partial sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_product(
    a_rows,
    b_rows,
    a_scale_rows,
    b_scale_rows,
    inside,
    K,
    group_k,
    WIDEN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """The tile's sum; BLOCK_K divides group_k, so that one step has one scale a row and one a column."""
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_rows[:, None] + depth[None, :], mask=(depth < K)[None, :], other=0.0)
        b = tl.load(b_rows[None, :] + depth[:, None], mask=inside[None, :] & (depth < K)[:, None], other=0.0)
        if WIDEN:
            partial = tl.dot(a.to(tl.float16), b.to(tl.float16))
        else:
            partial = tl.dot(a, b)
        a_scale = tl.load(a_scale_rows + start // group_k)
        b_scale = tl.load(b_scale_rows + start // group_k, mask=inside, other=0.0)
        acc += partial * a_scale[:, None] * b_scale[None, :]
    return acc


@triton.jit
def expert_block(
    a_ptr,
    b_ptr,
    a_scales_ptr,
    b_scales_ptr,
    expert_ids_ptr,
    out_ptr,
    N,
    K,
    group_n,
    group_k,
    WIDEN: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    block = tl.program_id(0).to(tl.int64)
    expert = tl.load(expert_ids_ptr + block).to(tl.int64)
    if expert >= 0:
        rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
        columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        inside = columns < N
        groups = tl.cdiv(K, group_k)
        a_rows = a_ptr + rows * K
        b_rows = b_ptr + (expert * N + columns) * K
        a_scale_rows = a_scales_ptr + rows * groups
        b_scale_rows = b_scales_ptr + (expert * tl.cdiv(N, group_n) + columns // group_n) * groups
        acc = scaled_product(
            a_rows, b_rows, a_scale_rows, b_scale_rows, inside, K, group_k, WIDEN, BLOCK_M, BLOCK_N, BLOCK_K
        )
        target = out_ptr + rows[:, None] * N + columns[None, :]
        tl.store(target, acc.to(out_ptr.dtype.element_ty), mask=inside[None, :])


def moe_mmk(a, b, a_scales, b_scales, expert_ids, out, group_n, group_k):
    num_blocks = expert_ids.numel()
    _, N, K = b.shape
    block_m, block_n = a.shape[0] // num_blocks, 128
    # A step lies in one block of scales: its length divides group_k.
    block_k = min(128, group_k & -group_k)
    expert_block[(num_blocks, triton.cdiv(N, block_n))](
        a,
        b,
        a_scales,
        b_scales,
        expert_ids,
        out,
        N,
        K,
        group_n,
        group_k,
        # fp8 products may add up in few bits, and a unit takes 32 at least. float16 holds every e4m3 number, and its
        # products add up in full.
        WIDEN=out.dtype == torch.float32 or block_k < 32,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        num_warps=8 if block_m == 128 else 4,
    )

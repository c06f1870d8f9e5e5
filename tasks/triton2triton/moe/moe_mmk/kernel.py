"""Block-scaled expert product: one program per block of rows and tile of columns scales every partial sum."""

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
        # float16 holds every e4m3 number, and its products add up in full float32 on every device.
        partial = tl.dot(a.to(tl.float16), b.to(tl.float16))
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
        acc = scaled_product(a_rows, b_rows, a_scale_rows, b_scale_rows, inside, K, group_k, BLOCK_M, BLOCK_N, BLOCK_K)
        target = out_ptr + rows[:, None] * N + columns[None, :]
        tl.store(target, acc.to(out_ptr.dtype.element_ty), mask=inside[None, :])


def moe_mmk(a, b, a_scales, b_scales, expert_ids, out, group_n, group_k):
    num_blocks = expert_ids.numel()
    _, N, K = b.shape
    block_n = 32
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
        BLOCK_M=a.shape[0] // num_blocks,
        BLOCK_N=block_n,
        BLOCK_K=min(64, group_k & -group_k),
    )

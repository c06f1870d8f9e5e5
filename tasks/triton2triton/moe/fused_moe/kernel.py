"""Routed expert product: one program per block of sorted choices and tile of columns."""

import triton
import triton.language as tl


@triton.jit
def expert_tile(
    x_ptr,
    weight_ptr,
    bias_ptr,
    topk_weights_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    rows_in_use_ptr,
    out_ptr,
    num_choices,
    N,
    K,
    top_k,
    HAS_BIAS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    block = tl.program_id(0)
    if block * BLOCK_M < tl.load(rows_in_use_ptr):
        expert = tl.load(expert_ids_ptr + block).to(tl.int64)
        choices = tl.load(sorted_ids_ptr + block * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
        columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        real = choices < num_choices
        inside = columns < N
        # 32-bit products would overflow in experts past 2**31 weights.
        x_rows = x_ptr + (choices // top_k) * K
        weight_rows = weight_ptr + (expert * N + columns) * K
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for start in range(0, K, BLOCK_K):
            depth = start + tl.arange(0, BLOCK_K)
            x = tl.load(x_rows[:, None] + depth[None, :], mask=real[:, None] & (depth < K)[None, :], other=0.0)
            w = tl.load(weight_rows[None, :] + depth[:, None], mask=inside[None, :] & (depth < K)[:, None], other=0.0)
            acc += tl.dot(x, w, input_precision="ieee")
        if HAS_BIAS:
            acc += tl.load(bias_ptr + expert * N + columns, mask=inside, other=0.0).to(tl.float32)[None, :]
        if WEIGHTED:
            acc *= tl.load(topk_weights_ptr + choices, mask=real, other=0.0)[:, None]
        target = out_ptr + choices[:, None] * N + columns[None, :]
        tl.store(target, acc.to(out_ptr.dtype.element_ty), mask=real[:, None] & inside[None, :])


def fused_moe(
    x,
    weight,
    bias,
    topk_weights,
    sorted_token_ids,
    expert_ids,
    num_tokens_post_padded,
    mul_routed_weight,
    out,
):
    _, N, K = weight.shape
    blocks = expert_ids.numel()
    block_m = sorted_token_ids.numel() // blocks
    block_n = 128 if block_m >= 64 and x.element_size() == 2 else 64
    # 128 bytes of each row; more where few rows leave the weights' bandwidth as the limit.
    block_k = (256 if block_m == 16 else 128) // x.element_size()
    expert_tile[(blocks, triton.cdiv(N, block_n))](
        x,
        weight,
        bias,
        topk_weights,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        out,
        topk_weights.numel(),
        N,
        K,
        topk_weights.shape[1],
        HAS_BIAS=bias is not None,
        WEIGHTED=mul_routed_weight,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
    )

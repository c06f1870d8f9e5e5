"""Routed expert product with packed integer weights: each program walks the groups of K for one tile of results.

Codes minus zeros are products' exact operands; a group's sum is scaled as a whole.
"""

import triton
import triton.language as tl


@triton.jit
def codes_of(qweight_rows, k, mask, BITS: tl.constexpr):
    """Codes of k, in int32, for rows that begin at `qweight_rows`."""
    if BITS == 4:
        codes = tl.load(qweight_rows + k // 2, mask=mask, other=0).to(tl.int32)
        codes = (codes >> (k % 2 * 4)) & 15
    else:
        codes = tl.load(qweight_rows + k, mask=mask, other=0).to(tl.int32)
    return codes


@triton.jit
def zeros_of(qzeros_ptr, expert, columns, group, N, groups, BITS: tl.constexpr):
    """Zero points of one group, in int32, for a tile of columns."""
    if BITS == 4:
        row = expert * tl.cdiv(N, 2) + columns // 2
        zeros = tl.load(qzeros_ptr + row * groups + group, mask=columns < N, other=0).to(tl.int32)
        zeros = (zeros >> (columns % 2 * 4)) & 15
    else:
        row = expert * N + columns
        zeros = tl.load(qzeros_ptr + row * groups + group, mask=columns < N, other=0).to(tl.int32)
    return zeros


@triton.jit
def quantized_expert_tile(
    x_ptr,
    qweight_ptr,
    scales_ptr,
    qzeros_ptr,
    topk_weights_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    rows_in_use_ptr,
    out_ptr,
    num_choices,
    N,
    K,
    group_size,
    top_k,
    BITS: tl.constexpr,
    HAS_ZEROS: tl.constexpr,
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
        groups = K // group_size
        x_rows = x_ptr + (choices // top_k)[:, None] * K
        qweight_rows = qweight_ptr + (expert * N + columns)[None, :] * (K * BITS // 8)
        zeros = tl.full((BLOCK_N,), 1 << (BITS - 1), tl.int32)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for group in range(groups):
            if HAS_ZEROS:
                zeros = zeros_of(qzeros_ptr, expert, columns, group, N, groups, BITS)
            partial = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for start in range(0, group_size, BLOCK_K):
                within = start + tl.arange(0, BLOCK_K)
                k = group * group_size + within
                x_mask = real[:, None] & (within < group_size)[None, :]
                x = tl.load(x_rows + k[None, :], mask=x_mask, other=0.0)
                w_mask = inside[None, :] & (within < group_size)[:, None]
                codes = codes_of(qweight_rows, k[:, None], w_mask, BITS) - zeros[None, :]
                partial = tl.dot(x, codes.to(x.dtype), partial, input_precision="ieee")
            scales = tl.load(scales_ptr + (expert * N + columns) * groups + group, mask=inside, other=0.0)
            acc += partial * scales.to(tl.float32)[None, :]
        if WEIGHTED:
            acc *= tl.load(topk_weights_ptr + choices, mask=real, other=0.0)[:, None]
        target = out_ptr + choices[:, None] * N + columns[None, :]
        tl.store(target, acc.to(out_ptr.dtype.element_ty), mask=real[:, None] & inside[None, :])


def fused_moe_gptq_awq(
    x,
    qweight,
    scales,
    qzeros,
    topk_weights,
    sorted_token_ids,
    expert_ids,
    num_tokens_post_padded,
    mul_routed_weight,
    out,
):
    K = x.shape[1]
    _, N, groups = scales.shape
    blocks = expert_ids.numel()
    block_n = 32
    quantized_expert_tile[(blocks, triton.cdiv(N, block_n))](
        x,
        qweight,
        scales,
        qzeros,
        topk_weights,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        out,
        topk_weights.numel(),
        N,
        K,
        K // groups,
        topk_weights.shape[1],
        BITS=4 if qweight.shape[2] < K else 8,
        HAS_ZEROS=qzeros is not None,
        WEIGHTED=mul_routed_weight,
        BLOCK_M=sorted_token_ids.numel() // blocks,
        BLOCK_N=block_n,
        BLOCK_K=32,
    )

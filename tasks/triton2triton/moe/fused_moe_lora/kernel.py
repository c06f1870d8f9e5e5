"""Adapters of experts in two launches: `shrink` leaves x times A in scratch memory, `expand` adds that times B."""

import torch
import triton
import triton.language as tl


@triton.jit
def shrink(
    x_ptr,
    lora_a_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    rows_in_use_ptr,
    hidden_ptr,
    num_choices,
    num_experts,
    blocks_per_lora,
    K,
    rank,
    top_k,
    BLOCK_M: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One block of one adapter and one slice: all of its rank."""
    block = tl.program_id(0).to(tl.int64)
    lora = block // blocks_per_lora
    num_loras = tl.num_programs(0) // blocks_per_lora
    if block % blocks_per_lora * BLOCK_M < tl.load(rows_in_use_ptr + lora):
        expert = tl.load(expert_ids_ptr + block).to(tl.int64)
        choices = tl.load(sorted_ids_ptr + block * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
        ranks = tl.arange(0, BLOCK_R)
        matrix = (tl.program_id(1) * num_loras + lora) * num_experts + expert
        x_rows = x_ptr + (choices // top_k)[:, None] * K
        a_rows = lora_a_ptr + (matrix * rank + ranks)[None, :] * K
        real = (choices < num_choices)[:, None]
        inside = (ranks < rank)[None, :]
        acc = tl.zeros((BLOCK_M, BLOCK_R), tl.float32)
        for start in range(0, K, BLOCK_K):
            k = start + tl.arange(0, BLOCK_K)
            x = tl.load(x_rows + k[None, :], mask=real & (k < K)[None, :], other=0.0)
            a = tl.load(a_rows + k[:, None], mask=inside & (k < K)[:, None], other=0.0)
            acc += tl.dot(x, a, input_precision="ieee")
        # Rows of the scratch are BLOCK_R wide: what lies past the rank is zero.
        target = hidden_ptr + (tl.program_id(1) * num_choices + choices)[:, None] * BLOCK_R + ranks[None, :]
        tl.store(target, acc.to(hidden_ptr.dtype.element_ty), mask=real)


@triton.jit
def expand(
    hidden_ptr,
    lora_b_ptr,
    topk_weights_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    rows_in_use_ptr,
    out_ptr,
    num_choices,
    num_experts,
    blocks_per_lora,
    N,
    rank,
    WEIGHTED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    """One block of one adapter, one slice and one tile of its columns."""
    block = tl.program_id(0).to(tl.int64)
    lora = block // blocks_per_lora
    num_loras = tl.num_programs(0) // blocks_per_lora
    if block % blocks_per_lora * BLOCK_M < tl.load(rows_in_use_ptr + lora):
        expert = tl.load(expert_ids_ptr + block).to(tl.int64)
        choices = tl.load(sorted_ids_ptr + block * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
        ranks = tl.arange(0, BLOCK_R)
        columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
        matrix = (tl.program_id(2) * num_loras + lora) * num_experts + expert
        real = (choices < num_choices)[:, None]
        hidden_rows = (tl.program_id(2) * num_choices + choices)[:, None] * BLOCK_R
        hidden = tl.load(hidden_ptr + hidden_rows + ranks[None, :], mask=real, other=0.0)
        b_mask = (columns < N)[None, :] & (ranks < rank)[:, None]
        b = tl.load(lora_b_ptr + (matrix * N + columns)[None, :] * rank + ranks[:, None], mask=b_mask, other=0.0)
        delta = tl.dot(hidden, b, input_precision="ieee")
        if WEIGHTED:
            delta *= tl.load(topk_weights_ptr + choices, mask=choices < num_choices, other=0.0)[:, None]
        target = out_ptr + (choices[:, None] * tl.num_programs(2) + tl.program_id(2)) * N + columns[None, :]
        inside = real & (columns < N)[None, :]
        old = tl.load(target, mask=inside, other=0.0).to(tl.float32)
        tl.store(target, (old + delta).to(out_ptr.dtype.element_ty), mask=inside)


def fused_moe_lora(
    x,
    lora_a,
    lora_b,
    topk_weights,
    sorted_token_ids,
    expert_ids,
    num_tokens_post_padded,
    out,
    mul_routed_weight,
):
    num_slices, num_loras, num_experts, rank, K = lora_a.shape
    N = lora_b.shape[3]
    num_choices = topk_weights.numel()
    blocks_per_lora = expert_ids.shape[1]
    block_m = sorted_token_ids.shape[1] // blocks_per_lora
    block_r = max(16, triton.next_power_of_2(rank))
    wide = x.element_size() == 4
    block_n = 32 if wide else 128
    hidden = torch.empty((num_slices, num_choices, block_r), dtype=x.dtype, device=x.device)
    shrink[(num_loras * blocks_per_lora, num_slices)](
        x,
        lora_a,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        hidden,
        num_choices,
        num_experts,
        blocks_per_lora,
        K,
        rank,
        topk_weights.shape[1],
        BLOCK_M=block_m,
        BLOCK_R=block_r,
        BLOCK_K=32 if wide else 128,
    )
    expand[(num_loras * blocks_per_lora, triton.cdiv(N, block_n), num_slices)](
        hidden,
        lora_b,
        topk_weights,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        out,
        num_choices,
        num_experts,
        blocks_per_lora,
        N,
        rank,
        WEIGHTED=mul_routed_weight,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_R=block_r,
    )

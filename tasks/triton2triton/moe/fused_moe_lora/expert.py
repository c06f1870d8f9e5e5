"""Adapters of experts with as many programs as blocks can be in use, slices side by side and long spans of columns.

Each adapter has room for all choices, and the baseline starts programs for all of it. Of Qwen3-30B-A3B's 2544 blocks
534 are in use in one draw, of Mixtral's 288 there are 64, of Qwen1.5-MoE's 4552 there are 549. Of the 30,528, 64,512
and 72,832 programs of `expand`, 24,120, 50,176 and 64,048 wait for one number and end. Here programs number the blocks
in use through all adapters, of which each expert pads one at most: 1008, 95 and 962.

`shrink` loads a token once for all slices, whose ranks are columns of one product. Where blocks are few, as Mixtral's
64 on 132 multiprocessors, K is cut into up to four parts, which the second kernel adds up in float32.

A program of `expand` waits four times, for rows in use, choices, hidden rows and then old results, to add 128 columns.
Here one adds up to 512 after three waits. Weights and old results of the tiles to come are on their way during a
product and its stores. The rank is a constant, so that rows of rank 8 are vectors of 16 bytes as well.
"""

import torch
import triton
import triton.language as tl

ENOUGH_PROGRAMS = 1024
MAX_PARTS = 4
COLUMNS_OF_A_SPAN = 512


@triton.jit
def _locate(rows_in_use_ptr, index, num_loras, BLOCK_M: tl.constexpr, LORAS: tl.constexpr):
    """Adapter of the index-th block in use, num_loras or more if there is none, and the block's number among its."""
    loras = tl.arange(0, LORAS)
    rows = tl.load(rows_in_use_ptr + loras, mask=loras < num_loras, other=0)
    ends = tl.cumsum(tl.cdiv(rows, BLOCK_M), axis=0)
    before = ends <= index
    return tl.sum(before.to(tl.int32), axis=0), index - tl.max(tl.where(before, ends, 0), axis=0)


@triton.jit
def _shrink_part(
    x_ptr,
    lora_a_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    rows_in_use_ptr,
    hidden_ptr,
    num_choices,
    num_loras,
    num_experts,
    blocks_per_lora,
    K,
    top_k,
    part_length,
    RANK: tl.constexpr,
    TOTAL_RANK: tl.constexpr,
    PARTS: tl.constexpr,
    EVEN: tl.constexpr,
    LORAS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """One part of K for one block of one adapter. Column c is rank c % RANK of slice c // RANK."""
    TILES: tl.constexpr = (TOTAL_RANK + BLOCK_C - 1) // BLOCK_C
    part = tl.program_id(0) % PARTS
    lora, block = _locate(rows_in_use_ptr, tl.program_id(0) // PARTS // TILES, num_loras, BLOCK_M, LORAS)
    if lora >= num_loras:
        return
    block += lora * blocks_per_lora
    expert = tl.load(expert_ids_ptr + block)
    choices = tl.load(sorted_ids_ptr + block.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    c = tl.program_id(0) // PARTS % TILES * BLOCK_C + tl.arange(0, BLOCK_C)
    matrices = (c // RANK * num_loras + lora) * num_experts + expert
    real = (choices < num_choices)[:, None]
    inside = (c < TOTAL_RANK)[None, :]
    x_rows = x_ptr + (choices // top_k)[:, None] * K
    a_rows = lora_a_ptr + (matrices.to(tl.int64) * RANK + c % RANK)[None, :] * K
    begin = part * part_length
    acc = tl.zeros((BLOCK_M, BLOCK_C), tl.float32)
    for start in range(begin, tl.minimum(begin + part_length, K), BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        if EVEN:
            x = tl.load(x_rows + k[None, :], mask=real, other=0.0)
            a = tl.load(a_rows + k[:, None], mask=inside, other=0.0)
        else:
            x = tl.load(x_rows + k[None, :], mask=real & (k < K)[None, :], other=0.0)
            a = tl.load(a_rows + k[:, None], mask=inside & (k < K)[:, None], other=0.0)
        acc = tl.dot(x, a, acc, input_precision="ieee")
    tl.store(hidden_ptr + (part * num_choices + choices)[:, None] * TOTAL_RANK + c[None, :], acc, mask=real & inside)


@triton.jit
def _expand_span(
    hidden_ptr,
    lora_b_ptr,
    topk_weights_ptr,
    sorted_ids_ptr,
    expert_ids_ptr,
    rows_in_use_ptr,
    out_ptr,
    num_choices,
    num_loras,
    num_experts,
    blocks_per_lora,
    N,
    spans,
    span_length,
    RANK: tl.constexpr,
    SLICES: tl.constexpr,
    PARTS: tl.constexpr,
    WEIGHTED: tl.constexpr,
    LORAS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_R: tl.constexpr,
):
    """One block of one adapter, one slice and some tiles of its columns."""
    first = tl.program_id(0) % spans * span_length
    layer = tl.program_id(0) // spans % SLICES
    lora, block = _locate(rows_in_use_ptr, tl.program_id(0) // spans // SLICES, num_loras, BLOCK_M, LORAS)
    if lora >= num_loras:
        return
    block += lora * blocks_per_lora
    expert = tl.load(expert_ids_ptr + block)
    choices = tl.load(sorted_ids_ptr + block.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    real = choices < num_choices
    ranks = tl.arange(0, BLOCK_R)
    hidden_ptrs = hidden_ptr + ((choices * SLICES + layer) * RANK)[:, None] + ranks[None, :]
    hidden_mask = real[:, None] & (ranks < RANK)[None, :]
    hidden = tl.load(hidden_ptrs, mask=hidden_mask, other=0.0)
    for part in tl.static_range(1, PARTS):
        part_ptrs = hidden_ptrs + part * tl.cast(num_choices, tl.int64) * (SLICES * RANK)
        hidden += tl.load(part_ptrs, mask=hidden_mask, other=0.0)
    hidden = hidden.to(lora_b_ptr.dtype.element_ty)
    if WEIGHTED:
        weights = tl.load(topk_weights_ptr + choices, mask=real, other=0.0)
    matrix = (layer * num_loras + lora) * num_experts + expert
    b_ptr = lora_b_ptr + matrix.to(tl.int64) * N * RANK
    out_rows = out_ptr + (choices * SLICES + layer)[:, None] * N
    end = tl.minimum(first + span_length, N)
    columns = first + tl.arange(0, BLOCK_N)
    # Old results are on their way one tile ahead.
    old = tl.load(out_rows + columns[None, :], mask=real[:, None] & (columns < end)[None, :], other=0.0)
    for start in range(first, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        # Columns past the end repeat the last one and are not stored.
        b_rows = b_ptr + tl.minimum(columns, N - 1)[None, :] * RANK
        b = tl.load(b_rows + ranks[:, None], mask=(ranks < RANK)[:, None], other=0.0)
        following = columns + BLOCK_N
        wanted = real[:, None] & (following < end)[None, :]
        next_old = tl.load(out_rows + following[None, :], mask=wanted, other=0.0)
        delta = tl.dot(hidden, b, input_precision="ieee")
        if WEIGHTED:
            delta *= weights[:, None]
        result = (old.to(tl.float32) + delta).to(out_ptr.dtype.element_ty)
        tl.store(out_rows + columns[None, :], result, mask=real[:, None] & (columns < end)[None, :])
        old = next_old


def _power(size: int) -> int:
    return max(16, triton.next_power_of_2(size))


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
    num_choices, blocks_per_lora = topk_weights.numel(), expert_ids.shape[1]
    block_m = sorted_token_ids.shape[1] // blocks_per_lora
    wide = x.element_size() == 4
    # Of every adapter and expert one block at most is padded.
    pairs = min(num_loras * num_experts, num_choices)
    blocks = min(num_loras * blocks_per_lora, (num_choices + pairs * (block_m - 1)) // block_m)
    amd = torch.version.hip is not None
    lists = sorted_token_ids, expert_ids, num_tokens_post_padded
    sizes = num_choices, num_loras, num_experts, blocks_per_lora
    lanes = triton.next_power_of_2(num_loras)

    total_rank = num_slices * rank
    block_c = min(64 if wide else 128, _power(total_rank))
    block_k = 32 if wide else 64 if block_m == 64 else 128
    block_r = _power(rank)
    steps = triton.cdiv(K, block_k)
    # Every span of columns adds up all parts, so that wide ones are few.
    parts = max(1, min(MAX_PARTS, ENOUGH_PROGRAMS // blocks, 128 // block_r, steps // 2))
    hidden = torch.empty((parts, num_choices, total_rank), dtype=torch.float32, device=x.device)
    _shrink_part[(blocks * triton.cdiv(total_rank, block_c) * parts,)](
        x,
        lora_a,
        *lists,
        hidden,
        *sizes,
        K,
        topk_weights.shape[1],
        triton.cdiv(steps, parts) * block_k,
        RANK=rank,
        TOTAL_RANK=total_rank,
        PARTS=parts,
        EVEN=K % block_k == 0,
        LORAS=lanes,
        BLOCK_M=block_m,
        BLOCK_C=block_c,
        BLOCK_K=block_k,
        num_stages=2 if amd else 3,
    )

    # Of these a multiprocessor holds five and more, and a compute unit of AMD in its 64 KiB of shared memory.
    block_n = 4096 // max(block_r, block_m) if amd else 8192 // max(block_r, 2 * block_m)
    block_n = min(32 if wide else 128, block_n)
    spans = triton.cdiv(N, COLUMNS_OF_A_SPAN)
    _expand_span[(blocks * num_slices * spans,)](
        hidden,
        lora_b,
        topk_weights,
        *lists,
        out,
        *sizes,
        N,
        spans,
        triton.cdiv(triton.cdiv(N, spans), block_n) * block_n,
        RANK=rank,
        SLICES=num_slices,
        PARTS=parts,
        WEIGHTED=mul_routed_weight,
        LORAS=lanes,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_R=block_r,
        num_stages=2 if amd else 3,
    )

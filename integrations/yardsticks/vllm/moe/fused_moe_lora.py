"""vLLM's adapters of experts in one kernel, with the tiles that it takes where the grid fills the GPU.

Where results are weighted, the engine has one row of `x` for each choice and the task has one for each token; so the
kernel is launched here, not by the engine's function. It rounds what is between the two products to the type of `x`.
It takes adapters by address: a kernel of ours writes these, and its time counts.
"""

import torch
import triton
import triton.language as tl
from vllm.lora.ops.triton_ops.fused_moe_lora_op import _fused_moe_lora_one_shot_kernel


@triton.jit
def write_lists(a, b, a_ptrs, b_ptrs, ids, enabled, a_stride, b_stride, slices, loras, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(a_ptrs + i, (a + i.to(tl.int64) * a_stride).to(tl.int64), mask=i < slices)
    tl.store(b_ptrs + i, (b + i.to(tl.int64) * b_stride).to(tl.int64), mask=i < slices)
    tl.store(ids + i, i, mask=i < loras)
    tl.store(enabled + i, 1, mask=i < loras)


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
    slices, loras, _, rank, k = lora_a.shape
    n, top_k = lora_b.shape[3], topk_weights.shape[1]
    block_m = sorted_token_ids.shape[1] // expert_ids.shape[1]
    pointers = torch.empty((2, slices), dtype=torch.int64, device=x.device)
    lists = torch.empty((2, loras), dtype=torch.int32, device=x.device)
    block = triton.next_power_of_2(max(slices, loras))
    write_lists[(1,)](
        lora_a,
        lora_b,
        pointers[0],
        pointers[1],
        lists[0],
        lists[1],
        lora_a.stride(0),
        lora_b.stride(0),
        slices,
        loras,
        block,
    )
    _fused_moe_lora_one_shot_kernel[(expert_ids.shape[1], slices, loras)](
        x,
        pointers[0],
        pointers[1],
        out,
        topk_weights,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        None,
        lists[0],
        lists[1],
        n,
        k,
        topk_weights.numel(),
        top_k,
        loras,
        x.stride(0),
        x.stride(1),
        *lora_a.stride()[1:],
        *lora_b.stride()[1:],
        out.stride(1),
        out.stride(2),
        sorted_token_ids.stride(0),
        expert_ids.stride(0),
        n,
        token_mapping_factor=top_k,
        naive_block_assignment=False,
        MUL_ROUTED_WEIGHT=mul_routed_weight,
        BLOCK_M=block_m,
        BLOCK_R=max(triton.next_power_of_2(rank), 16),
        actual_rank=rank,
        NPID_FACTOR=1,
        BLOCK_N=128,
        BLOCK_K=128 if k >= 256 else 64,
        ADD_INPUTS=True,
        num_warps=4,
        num_stages=3,
    )

"""vLLM's fused experts with 4 or 8-bit weights, with its default configuration, and blocks as tall as the task's."""

import torch
import triton.language as tl
from vllm.model_executor.layers.fused_moe.fused_moe import invoke_fused_moe_wna16_triton_kernel

TYPES = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}


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
    k, top_k = x.shape[1], out.shape[1]
    four_bits = qweight.shape[2] < k
    config = {
        "BLOCK_SIZE_M": sorted_token_ids.shape[0] // expert_ids.shape[0],
        "GROUP_SIZE_M": 1,
        "SPLIT_K": 1,
    }
    invoke_fused_moe_wna16_triton_kernel(
        x,
        qweight,
        out,
        scales,
        qzeros,
        topk_weights,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        mul_routed_weight,
        top_k,
        config,
        TYPES[x.dtype],
        not four_bits,
        four_bits,
        [0, k // scales.shape[2]],
    )

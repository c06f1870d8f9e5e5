"""vLLM's fused experts, with the configuration that it takes where none is tuned, and blocks as tall as the task's."""

import torch
import triton.language as tl
from vllm.model_executor.layers.fused_moe.fused_moe import get_default_config, invoke_fused_moe_triton_kernel

TYPES = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}


def enable_swap_ab(*_):
    return False


def resolve_moe_use_td():
    return False


def warn_if_moe_use_td_ineffective(*_, **__):
    pass


def set_triton_allocator(_):
    pass


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
    (tokens, k), (experts, n, _), top_k = x.shape, weight.shape, out.shape[1]
    config = get_default_config(tokens, experts, n, k, top_k, None)
    config["BLOCK_SIZE_M"] = sorted_token_ids.shape[0] // expert_ids.shape[0]
    invoke_fused_moe_triton_kernel(
        x,
        weight,
        out,
        None,
        None,
        topk_weights,
        sorted_token_ids,
        expert_ids,
        num_tokens_post_padded,
        mul_routed_weight,
        top_k,
        config,
        TYPES[x.dtype],
        False,
        False,
        False,
        False,
        False,
        B_bias=bias,
    )

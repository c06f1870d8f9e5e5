"""vLLM's batched experts, with the configuration that it takes where none is tuned. It has no bias."""

import torch
import triton.language as tl
from vllm.model_executor.layers.fused_moe.experts.fused_batched_moe import invoke_moe_batched_triton_kernel
from vllm.model_executor.layers.fused_moe.fused_moe import get_default_config

TYPES = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}


def normalize_batched_scales_shape(scales, _):
    return scales


def use_tensor_descriptor(*_):
    return False


def set_triton_allocator(_):
    pass


def batched_moe(x, weight, bias, expert_num_tokens, out):
    assert bias is None, "the engine has no bias here"
    experts, tokens, k = x.shape
    config = get_default_config(tokens, experts, weight.shape[1], k, 1, None)
    invoke_moe_batched_triton_kernel(
        x, weight, out, expert_num_tokens, TYPES[x.dtype], None, None, None, False, False, False, config, False
    )

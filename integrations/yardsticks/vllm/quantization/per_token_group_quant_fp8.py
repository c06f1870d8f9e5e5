"""vLLM's Triton kernel, with the launch parameters of its wrapper; on NVIDIA GPUs it prefers one in CUDA."""

import torch
import triton
from vllm.model_executor.layers.quantization.utils.fp8_utils import _per_token_group_quant_fp8


def per_token_group_quant_fp8(x, eps, q, scales):
    tokens, groups = scales.shape
    size = x.shape[1] // groups
    block = triton.next_power_of_2(size)
    largest = torch.finfo(q.dtype).max
    _per_token_group_quant_fp8[(tokens * groups,)](
        x,
        q,
        scales,
        size,
        x.shape[1],
        x.stride(0),
        eps,
        fp8_min=-largest,
        fp8_max=largest,
        use_ue8m0=False,
        BLOCK=block,
        num_warps=min(max(block // 256, 1), 8),
        num_stages=1,
    )

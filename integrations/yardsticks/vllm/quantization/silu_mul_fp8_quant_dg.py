"""vLLM's Triton kernel with the launch parameters of its wrapper; on NVIDIA GPUs it prefers one in CUDA."""

import torch
from vllm.model_executor.layers.fused_moe.experts.batched_deep_gemm_moe import _silu_mul_fp8_quant_deep_gemm


def silu_mul_fp8_quant_dg(x, expert_num_tokens, q, scales, eps, use_ue8m0):
    experts, _, intermediate = q.shape
    groups = scales.shape[2]
    largest = torch.finfo(q.dtype).max
    _silu_mul_fp8_quant_deep_gemm[(experts * groups,)](
        x,
        q,
        scales,
        expert_num_tokens,
        intermediate,
        intermediate // groups,
        *x.stride(),
        *q.stride(),
        *scales.stride(),
        expert_num_tokens.stride(0),
        eps,
        -largest,
        largest,
        use_ue8m0,
        BLOCK=intermediate // groups,
        NUM_STAGES=4,
        num_warps=1,
    )

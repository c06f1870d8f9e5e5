"""vLLM's multimodal rotary embedding, with the launch parameters of its wrapper. Cosines of tokens are contiguous."""

import triton
from vllm.model_executor.layers.rotary_embedding.mrope import _triton_mrope_forward


def mrope(query, key, cos, sin, section_t, section_h, interleaved):
    tokens, heads, dim = query.shape
    kv_heads, half = key.shape[1], cos.shape[2]
    _triton_mrope_forward[(tokens,)](
        query,
        key,
        cos,
        sin,
        tokens,
        query.stride(0),
        key.stride(0),
        heads,
        kv_heads,
        dim,
        2 * half,
        triton.next_power_of_2(heads),
        triton.next_power_of_2(kv_heads),
        triton.next_power_of_2(2 * half),
        section_t,
        section_h,
        half - section_t - section_h,
        interleaved,
        True,
        num_warps=4,
    )

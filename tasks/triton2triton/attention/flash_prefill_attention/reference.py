"""Softmax attention (Vaswani et al., 2017), one sequence after the other."""

import torch

from arena.semantics.attention import Rule, attend
from arena.semantics.ragged import spans


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seqlens: torch.Tensor,
    sm_scale: float,
    causal: bool,
) -> torch.Tensor:
    """query, key: (num_tokens, heads, head_dim); value: (num_tokens, num_kv_heads, value_dim)."""
    out = query.new_zeros(*query.shape[:2], value.shape[2])
    rule = Rule(sm_scale, causal=causal)
    for begin, end in spans(cu_seqlens):
        if begin < end:
            positions = torch.arange(end - begin, device=query.device)
            out[begin:end] = attend(query[begin:end], key[begin:end], value[begin:end], positions, rule)
    return out

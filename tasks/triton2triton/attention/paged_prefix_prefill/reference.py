"""Softmax attention over a cached prefix (Kwon et al., PagedAttention, 2023) and new tokens as one sequence."""

import torch

from arena.semantics.attention import Rule, attend
from arena.semantics.paged import tokens_of
from arena.semantics.ragged import spans


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    cu_seqlens: torch.Tensor,
    context_lens: torch.Tensor,
    sm_scale: float,
    sliding_window: int,
) -> torch.Tensor:
    """query, out: (num_tokens, num_heads, head_dim); caches: (num_blocks, block_size, num_kv_heads, head_dim)."""
    out = torch.zeros_like(query)
    rule = Rule(sm_scale, window=sliding_window)
    for (begin, end), context, blocks in zip(spans(cu_seqlens), context_lens.tolist(), block_table, strict=True):
        if begin < end:
            keys = torch.cat([tokens_of(key_cache, blocks, context), key[begin:end]])
            values = torch.cat([tokens_of(value_cache, blocks, context), value[begin:end]])
            positions = torch.arange(context, context + end - begin, device=query.device)
            out[begin:end] = attend(query[begin:end], keys, values, positions, rule)
    return out

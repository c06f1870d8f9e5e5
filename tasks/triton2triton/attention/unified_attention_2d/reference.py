"""Attention over a paged cache (Kwon et al., PagedAttention, 2023), one sequence after the other."""

from typing import Any

import torch

from arena.semantics.attention import Rule, attend, mixed_batch
from arena.semantics.paged import tokens_of
from arena.semantics.ragged import spans


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """cu_seqlens, seq_lens and block_table of a batch with num_decodes decodes among its sequences."""
    return mixed_batch(case, generator, count)


def reference(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_table: torch.Tensor,
    cu_seqlens: torch.Tensor,
    seq_lens: torch.Tensor,
    sm_scale: float,
    softcap: float,
    sliding_window: int,
) -> torch.Tensor:
    """query, out: (num_tokens, num_heads, head_dim); caches: (num_blocks, block_size, num_kv_heads, head_dim)."""
    out = torch.zeros_like(query)
    rule = Rule(sm_scale, softcap=softcap, window=sliding_window)
    for (begin, end), length, blocks in zip(spans(cu_seqlens), seq_lens.tolist(), block_table, strict=True):
        if begin < end:
            keys, values = tokens_of(key_cache, blocks, length), tokens_of(value_cache, blocks, length)
            positions = torch.arange(length - (end - begin), length, device=query.device)
            out[begin:end] = attend(query[begin:end], keys, values, positions, rule)
    return out

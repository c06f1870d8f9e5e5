"""Attention over a paged cache (Kwon et al., PagedAttention, 2023)."""

from typing import Any

import torch

from arena.semantics.attention import Rule, Sequences, attend, mixed_batch
from arena.semantics.paged import cached_tokens, unread_places


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """cu_seqlens, seq_lens and block_table of a batch with num_decodes decodes among its sequences."""
    return mixed_batch(case, generator, count)


def unread(
    block_table: torch.Tensor, seq_lens: torch.Tensor, num_blocks: int, block_size: int
) -> dict[str, torch.Tensor]:
    """Places of the caches that hold no token of a sequence. seq_lens: (count, num_seqs)."""
    return unread_places(block_table, seq_lens, num_blocks, block_size)


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
    read = cached_tokens(key_cache, value_cache, block_table)
    sequences = Sequences(query, cu_seqlens, seq_lens, read, *value_cache.shape[2:])
    return attend(sequences, Rule(sm_scale, softcap=softcap, window=sliding_window))

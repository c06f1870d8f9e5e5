"""Softmax attention over a cached prefix (Kwon et al., PagedAttention, 2023) and new tokens as one sequence."""

import torch

from arena.semantics.attention import Rule, Sequences, attend
from arena.semantics.paged import after_prefix, cached_tokens, unread_places


def unread(
    block_table: torch.Tensor, context_lens: torch.Tensor, num_blocks: int, block_size: int
) -> dict[str, torch.Tensor]:
    """Places of the caches that hold no token of a sequence. context_lens: (count, num_seqs)."""
    return unread_places(block_table, context_lens, num_blocks, block_size)


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
    prefix = cached_tokens(key_cache, value_cache, block_table)
    read = after_prefix(prefix, context_lens, key, value, cu_seqlens)
    lengths = context_lens + cu_seqlens.diff()
    sequences = Sequences(query, cu_seqlens, lengths, read, *value.shape[1:])
    return attend(sequences, Rule(sm_scale, window=sliding_window))

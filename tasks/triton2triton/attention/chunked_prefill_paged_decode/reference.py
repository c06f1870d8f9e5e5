"""Attention over a paged cache (Kwon et al., PagedAttention, 2023), one query for each sequence."""

import torch

from arena.semantics.attention import Rule, Sequences, attend
from arena.semantics.paged import cached_tokens, unread_places


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
    seq_lens: torch.Tensor,
    sm_scale: float,
) -> torch.Tensor:
    """query, out: (num_seqs, num_heads, head_dim); caches: (num_blocks, block_size, num_kv_heads, head_dim)."""
    read = cached_tokens(key_cache, value_cache, block_table)
    offsets = torch.arange(len(query) + 1, device=query.device)
    return attend(Sequences(query, offsets, seq_lens, read, *value_cache.shape[2:]), Rule(sm_scale))

"""The split half of Flash-Decoding (Dao et al., 2023) with grouped queries over a paged cache."""

import torch

from arena.semantics.attention import Rule, Sequences, attend_in_parts
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
    num_splits: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query: (num_seqs, num_heads, head_dim); partial: (num_seqs, num_heads, num_splits, value_dim)."""
    read = cached_tokens(key_cache, value_cache, block_table)
    offsets = torch.arange(len(query) + 1, device=query.device)
    sequences = Sequences(query, offsets, seq_lens, read, *value_cache.shape[2:])
    part_lengths = -(-seq_lens // num_splits)
    acc, maxima, sums = attend_in_parts(sequences, Rule(sm_scale, causal=False), num_splits, part_lengths)
    return acc / sums.masked_fill(sums == 0, 1.0)[..., None], maxima + sums.log()

"""The split half of Flash-Decoding (Dao et al., 2023) with grouped queries over a paged cache."""

import torch

from arena.semantics.attention import Rule, attend_in_parts, scores_of
from arena.semantics.paged import tokens_of


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
    rule = Rule(sm_scale, causal=False)
    partials, lses = [], []
    for row, length, blocks in zip(query, seq_lens.tolist(), block_table, strict=True):
        keys, values = tokens_of(key_cache, blocks, length), tokens_of(value_cache, blocks, length)
        scores = scores_of(row[None], keys, torch.tensor([length - 1], device=query.device), rule)
        acc, maxima, sums = attend_in_parts(scores, values, num_splits, -(-length // num_splits))
        partials.append(acc / sums.masked_fill(sums == 0, 1.0)[..., None])
        lses.append(maxima + sums.log())
    return torch.cat(partials), torch.cat(lses)

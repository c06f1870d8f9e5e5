"""Attention over a paged cache (Kwon et al., PagedAttention, 2023) in parts, one sequence after the other."""

from typing import Any

import torch

from arena.semantics.attention import Rule, attend_in_parts, mixed_batch, scores_of
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
    num_segments: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """query: (num_tokens, num_heads, head_dim); segment_acc: (num_tokens, num_heads, num_segments, head_dim)."""
    num_tokens, num_heads, head_dim = query.shape
    block_size = key_cache.shape[1]
    acc = query.new_zeros(num_tokens, num_heads, num_segments, head_dim)
    maxima, sums = (query.new_zeros(num_tokens, num_heads, num_segments) for _ in range(2))
    rule = Rule(sm_scale, softcap=softcap, window=sliding_window)
    for (begin, end), length, blocks in zip(spans(cu_seqlens), seq_lens.tolist(), block_table, strict=True):
        if begin < end:
            keys, values = tokens_of(key_cache, blocks, length), tokens_of(value_cache, blocks, length)
            positions = torch.arange(length - (end - begin), length, device=query.device)
            part_length = block_size * -(-length // (block_size * num_segments))
            scores = scores_of(query[begin:end], keys, positions, rule)
            parts = attend_in_parts(scores, values, num_segments, part_length)
            acc[begin:end], maxima[begin:end], sums[begin:end] = parts
    return acc, maxima, sums

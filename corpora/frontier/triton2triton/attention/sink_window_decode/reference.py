"""Attention with learned sinks (gpt-oss model card, 2025; Xiao et al., 2023) and a window over a paged cache."""

from typing import Any

import torch

from arena.semantics.attention import Rule, mixed_batch, scores_of
from arena.semantics.paged import cached_tokens, unread_places
from arena.semantics.ragged import at_once, spans


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
    sinks: torch.Tensor,
    block_table: torch.Tensor,
    cu_seqlens: torch.Tensor,
    seq_lens: torch.Tensor,
    sm_scale: float,
    sliding_window: int,
) -> torch.Tensor:
    """query, out: (num_tokens, num_heads, head_dim); caches: (num_blocks, block_size, num_kv_heads, head_dim)."""
    read = cached_tokens(key_cache, value_cache, block_table)
    rule = Rule(sm_scale, window=sliding_window)
    out = torch.zeros_like(query)
    for seq, (begin, end) in enumerate(spans(cu_seqlens)):
        length = int(seq_lens[seq])
        context = length - (end - begin)
        oldest = max(0, context - sliding_window + 1) if sliding_window else 0
        places = torch.arange(oldest, length, device=query.device)[None]
        keys, values = read(torch.tensor([seq], device=query.device), places)
        rows = at_once(5 * query.shape[1] * (length - oldest))
        for first in range(begin, end, rows):
            some = query[None, first : min(end, first + rows)]
            positions = context + first - begin + torch.arange(some.shape[1], device=query.device)
            scores = scores_of(some, keys, positions[None], places, rule)
            sink = sinks[:, None, None].expand(*scores.shape[:-1], 1)
            weights = torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)[..., :-1]
            grouped = torch.unflatten(weights, 1, (values.shape[2], -1))
            attended = torch.einsum("shgqk,skhd->sqhgd", grouped, values).flatten(2, 3)
            out[first : first + some.shape[1]] = attended[0]
    return out

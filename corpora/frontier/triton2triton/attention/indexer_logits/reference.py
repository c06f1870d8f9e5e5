"""Lightning indexer of DeepSeek Sparse Attention (DeepSeek-V3.2, 2025), without the choice of tokens."""

from typing import Any

import torch

from arena.semantics.paged import tokens_at, unread_places


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """seq_lens from min_len to max_len; one of several sequences has min_len tokens."""
    shape, device = (count, case["num_seqs"]), generator.device
    lengths = torch.randint(case["min_len"], case["max_len"] + 1, shape, generator=generator, device=device)
    if shape[1] > 1:
        shortest = torch.randint(0, shape[1], (count, 1), generator=generator, device=device)
        lengths = lengths.scatter(1, shortest, case["min_len"])
    return {"seq_lens": lengths}


def unread(
    block_table: torch.Tensor, seq_lens: torch.Tensor, num_blocks: int, block_size: int
) -> dict[str, torch.Tensor]:
    """Places of the cache that hold no token of a sequence. seq_lens: (count, num_seqs)."""
    places = unread_places(block_table, seq_lens, num_blocks, block_size)["key_cache"]
    return {"key_cache": places, "key_scales": places}


def reference(
    query: torch.Tensor,
    weights: torch.Tensor,
    key_cache: torch.Tensor,
    key_scales: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    query_len: int,
    max_len: int,
) -> torch.Tensor:
    """query: (num_seqs * query_len, num_heads, head_dim); logits: (num_seqs * query_len, max_len)."""
    logits = weights.new_full((len(query), max_len), -torch.inf)
    for seq, length in enumerate(seq_lens.tolist()):
        places = torch.arange(length, device=query.device)[None]
        keys, scales = (tokens_at(cache, block_table[seq, None], places)[0] for cache in (key_cache, key_scales))
        for row in range(seq * query_len, (seq + 1) * query_len):
            seen = max(0, length - query_len + 1 + row % query_len)
            scores = torch.relu(query[row] @ keys[:seen].T)
            logits[row, :seen] = scales[:seen] * (weights[row, None] @ scores)[0]
    return logits

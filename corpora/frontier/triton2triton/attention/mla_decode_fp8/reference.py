"""Absorbed decode attention of multi-head latent attention (DeepSeek-V2, 2024) over a paged fp8 cache."""

import math
from typing import Any

import torch

from arena.semantics.attention import Rule, Sequences, attend_in_parts
from arena.semantics.paged import tokens_at, unread_places


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """seq_lens, min_len to max_len; one of several sequences has min_len tokens."""
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
    return {"kv_cache": unread_places(block_table, seq_lens, num_blocks, block_size)["key_cache"]}


def reference(
    query: torch.Tensor,
    kv_cache: torch.Tensor,
    kv_scale: torch.Tensor,
    block_table: torch.Tensor,
    seq_lens: torch.Tensor,
    sm_scale: float,
    latent_dim: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query: (num_seqs, num_heads, latent_dim + rope_dim); out: (num_seqs, num_heads, latent_dim)."""

    def read(seqs: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = tokens_at(kv_cache, block_table[seqs], positions).to(query.dtype)[:, :, None]
        return rows, rows[..., :latent_dim]

    # Scales stay outside of the products, whose operands are exact so.
    offsets = torch.arange(len(query) + 1, device=query.device)
    sequences = Sequences(query, offsets, seq_lens, read, 1, latent_dim)
    rule = Rule(sm_scale * kv_scale[0], causal=False)
    part = attend_in_parts(sequences, rule, 1, seq_lens.clamp(min=1))
    acc, maxima, sums = (values[:, :, 0] for values in part)
    out = kv_scale * acc / sums.masked_fill(sums == 0, 1.0)[..., None]
    return out, (maxima + sums.log()) / math.log(2)

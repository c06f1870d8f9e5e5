"""Absorbed decode attention of multi-head latent attention (DeepSeek-V2, 2024) over a paged latent cache."""

import math
from typing import Any

import torch

from arena.semantics.attention import Rule, Sequences, attend_in_parts
from arena.semantics.paged import tokens_at


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """seq_lens, min_len to max_len, and cu_blocks, the offsets of their blocks. Of several one has min_len tokens."""
    shape, device = (count, case["num_seqs"]), generator.device
    lengths = torch.randint(case["min_len"], case["max_len"] + 1, shape, generator=generator, device=device)
    if shape[1] > 1:
        shortest = torch.randint(0, shape[1], (count, 1), generator=generator, device=device)
        lengths = lengths.scatter(1, shortest, case["min_len"])
    used = (lengths + case["block_size"] - 1) // case["block_size"]
    return {"cu_blocks": torch.nn.functional.pad(used.cumsum(dim=-1), (1, 0)), "seq_lens": lengths}


def unread(
    block_ids: torch.Tensor, cu_blocks: torch.Tensor, seq_lens: torch.Tensor, num_blocks: int, block_size: int
) -> dict[str, torch.Tensor]:
    """Places of the caches that hold no token. block_ids: (count, entries); seq_lens: (count, num_seqs)."""
    entries = torch.arange(block_ids.shape[1], device=seq_lens.device).expand(block_ids.shape).contiguous()
    owner = torch.searchsorted(cu_blocks[:, 1:].long().contiguous(), entries, right=True)
    last = seq_lens.shape[1] - 1
    present = owner <= last
    owner = owner.clamp(max=last)
    first = (entries - cu_blocks.long().gather(1, owner)) * block_size
    left = torch.where(present, seq_lens.long().gather(1, owner) - first, 0)
    held = (torch.arange(block_size, device=left.device) < left[..., None]).to(torch.uint8)
    places = block_ids.long()[..., None].expand(held.shape)
    used = held.new_zeros(len(held), num_blocks, block_size).scatter_reduce(1, places, held, "amax")
    return {"latent_cache": used == 0, "rope_cache": used == 0}


def reference(
    query_nope: torch.Tensor,
    query_rope: torch.Tensor,
    latent_cache: torch.Tensor,
    rope_cache: torch.Tensor,
    block_ids: torch.Tensor,
    cu_blocks: torch.Tensor,
    seq_lens: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query_nope, out: (num_seqs, num_heads, latent_dim); lse2: (num_seqs, num_heads)."""
    most = int(cu_blocks.diff().max())
    steps = torch.arange(max(most, 1), device=block_ids.device)
    table = block_ids[(cu_blocks[:-1, None] + steps).clamp(max=len(block_ids) - 1)]

    def read(seqs: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = table[seqs]
        latent = tokens_at(latent_cache, blocks, positions)
        keys = torch.cat([latent, tokens_at(rope_cache, blocks, positions)], dim=-1)
        return keys[:, :, None], latent[:, :, None]

    query = torch.cat([query_nope, query_rope], dim=-1)
    offsets = torch.arange(len(query) + 1, device=query.device)
    sequences = Sequences(query, offsets, seq_lens, read, 1, latent_cache.shape[-1])
    part = attend_in_parts(sequences, Rule(sm_scale, causal=False), 1, seq_lens.clamp(min=1))
    acc, maxima, sums = (values[:, :, 0] for values in part)
    return acc / sums.masked_fill(sums == 0, 1.0)[..., None], (maxima + sums.log()) / math.log(2)

"""Sparse attention (DeepSeek-V3.2, 2025) over latent tokens (multi-head latent attention, DeepSeek-V2, 2024)."""

import math
from typing import Any

import torch

from arena.semantics.ragged import at_once


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """indices: one slot of each of top_k parts. Every other row ascends and ends in padding, others are shuffled."""
    device, tokens, top_k = generator.device, case["num_tokens"], case["top_k"]
    starts = torch.arange(top_k + 1, device=device) * case["num_slots"] // top_k
    places = torch.rand((count, tokens, top_k), generator=generator, device=device, dtype=torch.float64)
    slots = starts[:-1] + (places * starts.diff()).long()
    counts = torch.randint(
        case["min_count"], case["max_count"] + 1, (count, tokens), generator=generator, device=device
    )
    if tokens > 1:
        fewest = torch.randint(0, tokens, (count, 1), generator=generator, device=device)
        counts = counts.scatter(1, fewest, case["min_count"])
    slots = slots.masked_fill(torch.arange(top_k, device=device) >= counts[..., None], -1)
    order = torch.rand(slots.shape, generator=generator, device=device).argsort(dim=-1)
    shuffled = (torch.arange(tokens, device=device) % 2 == 1)[:, None]
    return {"indices": torch.where(shuffled, slots.gather(-1, order), slots)}


def unread(indices: torch.Tensor, num_slots: int) -> dict[str, torch.Tensor]:
    """Slots of the caches that no row lists. indices: (count, num_tokens, top_k)."""
    listed = indices.flatten(1).long() + 1
    used = torch.zeros(len(listed), num_slots + 1, dtype=torch.bool, device=indices.device).scatter(1, listed, True)
    return {"latent_cache": ~used[:, 1:], "rope_cache": ~used[:, 1:]}


def reference(
    query_nope: torch.Tensor,
    query_rope: torch.Tensor,
    latent_cache: torch.Tensor,
    rope_cache: torch.Tensor,
    indices: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query_nope, out: (num_tokens, num_heads, latent_dim); lse2: (num_tokens, num_heads)."""
    num_heads, latent_dim = query_nope.shape[1:]
    out, lse2 = [], []
    rows = at_once(indices.shape[1] * (3 * latent_dim + 4 * num_heads))
    for nope, rope, some in zip(query_nope.split(rows), query_rope.split(rows), indices.split(rows), strict=True):
        absent = some < 0
        latent, rotated = (
            cache[some.clamp(min=0).long()].masked_fill(absent[..., None], 0) for cache in (latent_cache, rope_cache)
        )
        products = torch.einsum("thd,tkd->thk", torch.cat([nope, rope], -1), torch.cat([latent, rotated], -1))
        scores = (products * sm_scale).masked_fill(absent[:, None], -torch.inf)
        highest = scores.amax(dim=-1, keepdim=True)
        weights = torch.exp(scores - highest.masked_fill(highest == -torch.inf, 0.0))
        sums = weights.sum(dim=-1)
        out.append(torch.einsum("thk,tkd->thd", weights, latent) / sums.masked_fill(sums == 0, 1.0)[..., None])
        lse2.append((highest[..., 0] + sums.log()) / math.log(2))
    return torch.cat(out), torch.cat(lse2)

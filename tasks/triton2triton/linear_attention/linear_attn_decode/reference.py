"""Recurrent step of linear attention (Katharopoulos et al., 2020) with a decay by head, on states in slots."""

from typing import Any

import torch

from arena.semantics.ragged import at_once


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """idx_mapping: distinct slots in random order, with -1 in num_padded random places."""
    device, num_reqs = generator.device, case["num_reqs"]
    order = torch.rand(count, num_reqs, generator=generator, device=device).argsort(dim=-1)
    slots = torch.rand(count, case["num_slots"], generator=generator, device=device).argsort(dim=-1)
    idx_mapping = torch.full((count, num_reqs), -1, device=device)
    places = order[:, case["num_padded"] :]
    return {"idx_mapping": idx_mapping.scatter_(1, places, slots[:, : places.shape[1]])}


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    slopes: torch.Tensor,
    idx_mapping: torch.Tensor,
    kv_cache: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """query, key: (num_reqs, num_heads, head_dim); out: (num_reqs, num_heads, value_dim)."""
    out, after = torch.zeros_like(value), kv_cache.clone()
    decay = torch.exp(-slopes)[:, None, None]
    used = (idx_mapping >= 0).nonzero().flatten()
    for requests in used.split(at_once(4 * kv_cache[0].numel())):
        slots = idx_mapping[requests].long()
        state = decay * kv_cache[slots] + key[requests][..., None] * value[requests][:, :, None]
        after[slots] = state
        out[requests] = (query[requests][..., None] * state).sum(dim=2)
    return out, after

"""Sparse prefill over ragged lists of latent rows (DeepSeek-V4, 2026), with learned sinks (gpt-oss, 2025)."""

from typing import Any

import torch

from arena.semantics.ragged import at_once


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """cu_indices and indices: distinct slots of each token, of every other one in ascending order."""
    device, tokens, most = generator.device, case["num_tokens"], case["max_count"]
    counts = torch.randint(case["min_count"], most + 1, (count, tokens), generator=generator, device=device)
    if tokens > 1:
        fewest = torch.randint(0, tokens, (count, 1), generator=generator, device=device)
        counts = counts.scatter(1, fewest, case["min_count"])
    offsets = torch.nn.functional.pad(counts.cumsum(dim=-1), (1, 0))
    starts = torch.arange(most + 1, device=device) * case["num_slots"] // most
    places = torch.rand((count, tokens, most), generator=generator, device=device, dtype=torch.float64)
    slots = starts[:-1] + (places * starts.diff()).long()
    order = torch.rand(slots.shape, generator=generator, device=device).argsort(dim=-1)
    steps = torch.arange(most, device=device)
    shuffled = (torch.arange(tokens, device=device) % 2 == 1)[:, None]
    slots = slots.gather(-1, torch.where(shuffled, order, steps))
    unused = tokens * most  # a place behind the last, which takes what no list holds
    target = torch.where(steps < counts[..., None], offsets[:, :-1, None] + steps, unused)
    indices = slots.new_zeros(count, unused + 1).scatter(1, target.flatten(1), slots.flatten(1))
    return {"indices": indices[:, :-1], "cu_indices": offsets}


def unread(indices: torch.Tensor, cu_indices: torch.Tensor, num_slots: int) -> dict[str, torch.Tensor]:
    """Rows of kv in no list. indices: (count, entries)."""
    held = torch.arange(indices.shape[1], device=indices.device) < cu_indices[:, -1:]
    listed = torch.where(held, indices.long(), num_slots)
    used = torch.zeros(len(listed), num_slots + 1, dtype=torch.bool, device=indices.device).scatter(1, listed, True)
    return {"kv": ~used[:, :-1]}


def reference(
    query: torch.Tensor,
    kv: torch.Tensor,
    indices: torch.Tensor,
    cu_indices: torch.Tensor,
    sinks: torch.Tensor | None,
    sm_scale: float,
) -> torch.Tensor:
    """query, out: (num_tokens, num_heads, head_dim); kv: (num_slots, head_dim); sinks: (num_heads,)."""
    num_heads, head_dim = query.shape[1:]
    counts = cu_indices.diff()
    steps = torch.arange(max(1, int(counts.max())), device=query.device)
    out = []
    rows = at_once(len(steps) * (3 * head_dim + 5 * num_heads))
    for some, begins, lengths in zip(query.split(rows), cu_indices[:-1].split(rows), counts.split(rows), strict=True):
        absent = steps >= lengths[:, None]
        listed = indices[(begins[:, None] + steps).clamp(max=len(indices) - 1)].masked_fill(absent, 0)
        latent = kv[listed.long()].masked_fill(absent[..., None], 0)
        scores = torch.einsum("thd,tkd->thk", some, latent) * sm_scale
        scores = scores.masked_fill(absent[:, None], -torch.inf)
        sink = scores.new_full((len(some), num_heads, 1), -torch.inf)
        if sinks is not None:
            sink = sinks[:, None].to(scores.dtype).expand(sink.shape)
        scores = torch.cat([scores, sink], dim=-1)
        highest = scores.amax(dim=-1, keepdim=True)
        weights = torch.softmax(scores, dim=-1).masked_fill(highest == -torch.inf, 0.0)
        out.append(torch.einsum("thk,tkd->thd", weights[..., :-1], latent))
    return torch.cat(out)

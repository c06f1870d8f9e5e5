"""Lightning Attention 2 (Qin et al., 2024): decayed causal linear attention inside every chunk."""

from typing import Any

import torch

from arena.semantics.decay import head_slopes


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """slopes: those of the heads of one layer, another layer in every draw."""
    return {"slopes": head_slopes(case["num_heads"], generator, count)}


def reference(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, slopes: torch.Tensor, chunk_size: int
) -> torch.Tensor:
    """query, key: (batch, seq_len, num_heads, head_dim); value, out: (batch, seq_len, num_heads, value_dim)."""
    parts = []
    for queries, keys, values in zip(*(x.split(chunk_size, dim=1) for x in (query, key, value)), strict=True):
        age = torch.arange(queries.shape[1], device=query.device)
        age = age[:, None] - age
        decay = torch.where(age >= 0, torch.exp(-slopes[:, None, None] * age.clamp(min=0)), 0.0)
        scores = torch.einsum("bihd,bjhd->bhij", queries, keys) * decay
        parts.append(torch.einsum("bhij,bjhe->bihe", scores, values))
    return torch.cat(parts, dim=1)

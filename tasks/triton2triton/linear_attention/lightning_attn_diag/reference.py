"""Lightning Attention 2 (Qin et al., 2024): decayed causal linear attention inside every chunk."""

import torch

from arena.semantics.decay import head_slopes


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


def make_inputs(case, generator, count):
    """Slopes of one layer for every draw."""
    return {"slopes": head_slopes(case["num_heads"], generator, count)}

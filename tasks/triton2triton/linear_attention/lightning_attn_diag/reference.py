"""Lightning Attention 2 (Qin et al., 2024): decayed causal linear attention inside every chunk."""

from typing import Any

import torch

from arena.semantics.decay import head_slopes
from arena.semantics.ragged import at_once
from arena.semantics.state_space import chunked


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """slopes: those of the heads of one layer, another layer in every draw."""
    return {"slopes": head_slopes(case["num_heads"], generator, count)}


def reference(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, slopes: torch.Tensor, chunk_size: int
) -> torch.Tensor:
    """query, key: (batch, seq_len, num_heads, head_dim); value, out: (batch, seq_len, num_heads, value_dim)."""
    age = torch.arange(chunk_size, device=query.device)
    age = age[:, None] - age
    decay = torch.where(age >= 0, torch.exp(-slopes[:, None, None] * age.clamp(min=0)), 0.0)
    batch, seq_len, num_heads, head_dim = query.shape
    some = at_once(2 * batch * num_heads * chunk_size * (chunk_size + head_dim + value.shape[3])) * chunk_size
    outs = []
    for parts in zip(*(x.split(some, dim=1) for x in (query, key, value)), strict=True):
        queries, keys, values = (chunked(part, chunk_size) for part in parts)
        scores = torch.einsum("bcihd,bcjhd->bchij", queries, keys) * decay
        outs.append(torch.einsum("bchij,bcjhe->bcihe", scores, values).flatten(1, 2))
    return torch.cat(outs, dim=1)[:, :seq_len]

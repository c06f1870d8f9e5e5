"""Lightning Attention 2 (Qin et al., 2024): what the state before its chunk adds to every token."""

from typing import Any

import torch

from arena.semantics.decay import head_slopes
from arena.semantics.ragged import at_once
from arena.semantics.state_space import chunked


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """slopes: those of the heads of one layer, another layer in every draw."""
    return {"slopes": head_slopes(case["num_heads"], generator, count)}


def reference(
    query: torch.Tensor, slopes: torch.Tensor, states: torch.Tensor, out: torch.Tensor, chunk_size: int
) -> torch.Tensor:
    """query: (batch, seq_len, num_heads, head_dim); states: (batch, num_heads, num_chunks, head_dim, value_dim)."""
    steps = torch.arange(1, chunk_size + 1, device=query.device)
    decay = torch.exp(-steps[:, None] * slopes)
    batch, seq_len, num_heads, head_dim = query.shape
    some = at_once(2 * batch * num_heads * chunk_size * (head_dim + states.shape[4]))
    parts = []
    for queries, state in zip(query.split(some * chunk_size, dim=1), states.split(some, dim=2), strict=True):
        decayed = chunked(queries, chunk_size) * decay[..., None]
        parts.append(torch.einsum("bcthd,bhcde->bcthe", decayed, state).flatten(1, 2))
    return out + torch.cat(parts, dim=1)[:, :seq_len]

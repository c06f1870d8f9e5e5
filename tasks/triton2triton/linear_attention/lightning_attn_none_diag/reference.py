"""Lightning Attention 2 (Qin et al., 2024): what the state before its chunk adds to every token."""

from typing import Any

import torch

from arena.semantics.decay import head_slopes


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """slopes: those of the heads of one layer, another layer in every draw."""
    return {"slopes": head_slopes(case["num_heads"], generator, count)}


def reference(
    query: torch.Tensor, slopes: torch.Tensor, states: torch.Tensor, out: torch.Tensor, chunk_size: int
) -> torch.Tensor:
    """query: (batch, seq_len, num_heads, head_dim); states: (batch, num_heads, num_chunks, head_dim, value_dim)."""
    parts = []
    for chunk, queries in enumerate(query.split(chunk_size, dim=1)):
        steps = torch.arange(1, queries.shape[1] + 1, device=query.device)
        decay = torch.exp(-steps[:, None] * slopes)
        parts.append(torch.einsum("bthd,bhde->bthe", queries * decay[..., None], states[:, :, chunk]))
    return out + torch.cat(parts, dim=1)

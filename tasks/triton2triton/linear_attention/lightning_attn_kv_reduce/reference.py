"""Lightning Attention 2 (Qin et al., 2024): the state before every chunk, by its recurrence."""

from typing import Any

import torch

from arena.semantics.decay import head_slopes


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """slopes: those of the heads of one layer, another layer in every draw."""
    return {"slopes": head_slopes(case["num_heads"], generator, count)}


def reference(
    slopes: torch.Tensor, kv: torch.Tensor, state: torch.Tensor, seq_len: int, chunk_size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """kv: (batch, num_heads, num_chunks, head_dim, value_dim); state: (batch, num_heads, head_dim, value_dim)."""
    before = []
    for chunk in range(kv.shape[2]):
        before.append(state)
        tokens = min(chunk_size, seq_len - chunk * chunk_size)
        state = torch.exp(-slopes * tokens)[:, None, None] * state + kv[:, :, chunk]
    return torch.stack(before, dim=2), state

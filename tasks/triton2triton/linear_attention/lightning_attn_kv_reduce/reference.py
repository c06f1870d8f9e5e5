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
    num_chunks = kv.shape[2]
    tokens = (seq_len - chunk_size * torch.arange(num_chunks, device=kv.device)).clamp(max=chunk_size)
    decays = torch.exp(-tokens[:, None] * slopes)[..., None, None]
    before = []
    for decay, added in zip(decays.unbind(), kv.unbind(dim=2), strict=True):
        before.append(state)
        state = torch.addcmul(added, decay, state)
    return torch.stack(before, dim=2), state

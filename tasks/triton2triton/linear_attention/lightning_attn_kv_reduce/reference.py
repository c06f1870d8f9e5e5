"""Lightning Attention 2 (Qin et al., 2024): the state before every chunk, by its recurrence."""

import torch

from arena.semantics.decay import head_slopes


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


def make_inputs(case, generator, count):
    """Slopes of one layer for every draw."""
    return {"slopes": head_slopes(case["num_heads"], generator, count)}

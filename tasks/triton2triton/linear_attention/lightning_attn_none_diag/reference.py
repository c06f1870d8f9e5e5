"""Lightning Attention 2 (Qin et al., 2024): what the state before its chunk adds to every token."""

import torch

from arena.semantics.decay import head_slopes


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


def make_inputs(case, generator, count):
    """Slopes of one layer for every draw."""
    return {"slopes": head_slopes(case["num_heads"], generator, count)}

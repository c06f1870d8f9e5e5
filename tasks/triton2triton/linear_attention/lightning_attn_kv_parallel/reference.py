"""Lightning Attention 2 (Qin et al., 2024): decayed sum of key-value products of each chunk."""

from typing import Any

import torch

from arena.semantics.decay import head_slopes


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """slopes: those of the heads of one layer, another layer in every draw."""
    return {"slopes": head_slopes(case["num_heads"], generator, count)}


def reference(key: torch.Tensor, value: torch.Tensor, slopes: torch.Tensor, chunk_size: int) -> torch.Tensor:
    """key: (batch, seq_len, num_heads, head_dim); kv: (batch, num_heads, num_chunks, head_dim, value_dim)."""
    chunks = []
    for keys, values in zip(key.split(chunk_size, dim=1), value.split(chunk_size, dim=1), strict=True):
        age = torch.arange(keys.shape[1] - 1, -1, -1, device=key.device)
        decay = torch.exp(-age[:, None] * slopes)
        chunks.append(torch.einsum("bthd,bthe->bhde", keys * decay[..., None], values))
    return torch.stack(chunks, dim=2)

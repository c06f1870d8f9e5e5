"""Lightning Attention 2 (Qin et al., 2024): decayed sum of key-value products of each chunk."""

from typing import Any

import torch

from arena.semantics.decay import head_slopes
from arena.semantics.ragged import at_once
from arena.semantics.state_space import chunked


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """slopes: those of the heads of one layer, another layer in every draw."""
    return {"slopes": head_slopes(case["num_heads"], generator, count)}


def reference(key: torch.Tensor, value: torch.Tensor, slopes: torch.Tensor, chunk_size: int) -> torch.Tensor:
    """key: (batch, seq_len, num_heads, head_dim); kv: (batch, num_heads, num_chunks, head_dim, value_dim)."""
    batch, _, num_heads, head_dim = key.shape
    some = at_once(2 * batch * num_heads * chunk_size * (head_dim + value.shape[3])) * chunk_size
    parts = []
    for keys, values in zip(key.split(some, dim=1), value.split(some, dim=1), strict=True):
        tokens = torch.arange(keys.shape[1], device=key.device)
        last = (tokens // chunk_size * chunk_size + chunk_size).clamp(max=keys.shape[1]) - 1
        decayed = keys * torch.exp(-(last - tokens)[:, None] * slopes)[..., None]
        parts.append(torch.einsum("bcthd,bcthe->bhcde", chunked(decayed, chunk_size), chunked(values, chunk_size)))
    return torch.cat(parts, dim=2)

"""WY representation of a chunk's delta rule (Yang et al., DeltaNet, 2024), channel gates as in Kimi Linear (2025)."""

from typing import Any

import torch

from arena.semantics.chunks import chunk_begins, chunk_rows
from arena.semantics.decay import draw_gated_chunks


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Random lengths, their chunks, and log-decays by channel, summed within chunks."""
    return draw_gated_chunks(case, generator, count)


def reference(
    key: torch.Tensor,
    value: torch.Tensor,
    beta: torch.Tensor,
    g: torch.Tensor,
    inverse: torch.Tensor,
    cu_seqlens: torch.Tensor,
    chunk_size: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """key, g, w, kg: (num_tokens, num_heads, head_dim); beta: (num_tokens, num_heads); inverse: (…, chunk_size)."""
    num_tokens = key.shape[0]
    tokens = torch.arange(num_tokens, device=key.device)
    begins = chunk_begins(cu_seqlens, num_tokens, chunk_size)
    lasts = chunk_rows(cu_seqlens, chunk_size).amax(dim=1)
    last = lasts[torch.searchsorted(lasts, tokens)]
    decayed = key * beta[..., None] * torch.exp(g)
    written = value * beta[..., None]
    w, u = torch.zeros_like(key), torch.zeros_like(value)
    for column in range(chunk_size):
        other = (begins + column).minimum(tokens)
        weight = torch.where((begins + column <= tokens)[:, None], inverse[:, :, column], 0.0)[..., None]
        w = w + weight * decayed[other]
        u = u + weight * written[other]
    return w, u, key * torch.exp(g[last] - g)

"""WY representation of a chunk's delta rule (Yang et al., DeltaNet, 2024), channel gates as in Kimi Linear (2025)."""

from typing import Any

import torch

from arena.semantics.chunks import chunk_rows, gather_chunks, scatter_chunks
from arena.semantics.decay import GATE_FLOOR, draw_gated_chunks


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Random lengths, their chunks, and log-decays by channel, summed within chunks."""
    return draw_gated_chunks(case, generator, count, GATE_FLOOR / case["chunk_size"])


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
    rows = chunk_rows(cu_seqlens, chunk_size)
    lasts = rows.amax(dim=1)
    last = lasts[torch.searchsorted(lasts, tokens)]
    weights = gather_chunks(inverse, rows).transpose(1, 2).tril()

    def applied(to: torch.Tensor) -> torch.Tensor:
        chunks = weights @ gather_chunks(to, rows).transpose(1, 2)
        return scatter_chunks(chunks.transpose(1, 2), rows, num_tokens)

    w, u = applied(key * beta[..., None] * torch.exp(g)), applied(value * beta[..., None])
    return w, u, key * torch.exp(g[last] - g)

"""Chunked gated linear attention (Yang et al., 2023) with the scores of Kimi Delta Attention (Kimi Linear, 2025)."""

from typing import Any

import torch

from arena.semantics.chunks import chunk_rows
from arena.semantics.decay import draw_gated_chunks


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Random lengths, their chunks, and log-decays by channel, summed within chunks."""
    return draw_gated_chunks(case, generator, count)


def reference(
    query: torch.Tensor,
    value: torch.Tensor,
    g: torch.Tensor,
    scores: torch.Tensor,
    states: torch.Tensor,
    cu_seqlens: torch.Tensor,
    sm_scale: float,
    chunk_size: int,
) -> torch.Tensor:
    """query, g: (num_tokens, num_heads, head_dim); scores: (…, chunk_size); value, out: (…, value_dim)."""
    outs = []
    rows = chunk_rows(cu_seqlens, chunk_size)
    for state, tokens, length in zip(states, rows, (rows >= 0).sum(dim=1).tolist(), strict=False):
        chunk = slice(int(tokens[0]), int(tokens[0]) + length)
        earlier = torch.einsum("thd,hde->the", query[chunk] * torch.exp(g[chunk]), state)
        inside = scores[chunk, :, :length].transpose(0, 1).tril()
        outs.append(sm_scale * earlier + torch.einsum("htu,uhe->the", inside, value[chunk]))
    return torch.cat(outs)

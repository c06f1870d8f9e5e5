"""Chunked gated linear attention (Yang et al., 2023) with the scores of Kimi Delta Attention (Kimi Linear, 2025)."""

from typing import Any

import torch

from arena.semantics.chunks import chunk_rows, gather_chunks
from arena.semantics.decay import GATE_FLOOR, draw_gated_chunks
from arena.semantics.ragged import at_once


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Random lengths, their chunks, and log-decays by channel, summed within chunks."""
    return draw_gated_chunks(case, generator, count, GATE_FLOOR / case["chunk_size"])


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
    rows = chunk_rows(cu_seqlens, chunk_size)
    some = at_once(4 * chunk_size * query.shape[1] * (query.shape[2] + value.shape[2] + chunk_size))
    out = torch.zeros_like(value)
    for tokens, state in zip(rows.split(some), states[: len(rows)].split(some), strict=True):
        queries, gates, values, products = (gather_chunks(x, tokens) for x in (query, g, value, scores))
        earlier = torch.einsum("cthd,chde->cthe", queries * torch.exp(gates), state)
        inside = products.transpose(1, 2).tril()
        attended = sm_scale * earlier + torch.einsum("chtu,cuhe->cthe", inside, values)
        out[tokens[tokens >= 0]] = attended[tokens >= 0]
    return out

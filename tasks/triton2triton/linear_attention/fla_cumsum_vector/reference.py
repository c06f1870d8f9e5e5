"""Cumulative log-decays of chunked linear attention (Yang et al., Gated Linear Attention, 2023), one a channel."""

from typing import Any

import torch

from arena.semantics.chunks import chunk_rows, draw_chunks, draw_log_decays, gather_chunks, scatter_chunks


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Random lengths, their chunks, and log-decays of -0.08 on average."""
    shape = (count, case["num_tokens"], case["num_heads"], case["head_dim"])
    return {**draw_chunks(case, generator, count), "g": draw_log_decays(shape, -0.08, generator)}


def reference(g: torch.Tensor, cu_seqlens: torch.Tensor, chunk_size: int, reverse: bool, scale: float) -> torch.Tensor:
    """g, sums: (num_tokens, num_heads, head_dim)."""
    rows = chunk_rows(cu_seqlens, chunk_size)
    chunks = gather_chunks(g, rows)
    to_here = chunks.cumsum(dim=1)
    if reverse:
        to_here = chunks.sum(dim=1, keepdim=True) - to_here + chunks
    return scatter_chunks(to_here * scale, rows, g.shape[0])

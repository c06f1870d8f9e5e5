"""Cumulative log-decays of chunked linear attention (Yang et al., Gated Linear Attention, 2023), one number a head."""

from typing import Any

import torch

from arena.semantics.chunks import chunk_rows, draw_chunks, draw_log_decays, gather_chunks, scatter_chunks


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Random lengths, their chunks, and log-decays of -0.1 on average."""
    gates = draw_log_decays((count, case["num_tokens"], case["num_heads"]), -0.1, generator)
    return {**draw_chunks(case, generator, count), "g": gates}


def reference(g: torch.Tensor, cu_seqlens: torch.Tensor, chunk_size: int, reverse: bool, scale: float) -> torch.Tensor:
    """g, sums: (num_tokens, num_heads)."""
    rows = chunk_rows(cu_seqlens, chunk_size)
    gates = gather_chunks(g, rows)
    sums = gates.flip(1).cumsum(dim=1).flip(1) if reverse else gates.cumsum(dim=1)
    return scale * scatter_chunks(sums, rows, g.shape[0])

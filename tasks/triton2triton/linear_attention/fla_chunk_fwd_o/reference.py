"""Output of chunked linear attention with scalar decay (Yang et al., Gated Delta Networks, 2024), chunk by chunk."""

from typing import Any

import torch

from arena.semantics.chunks import (
    chunk_begins,
    chunk_rows,
    draw_chunks,
    draw_log_decays,
    gather_chunks,
    scatter_chunks,
    sums_within_chunks,
)


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Random lengths, their chunks, and sums of log-decays: -0.05 a token on average, but -100 for one in 64."""
    drawn = draw_chunks(case, generator, count)
    decays = draw_log_decays((count, case["num_tokens"], case["num_value_heads"]), -0.05, generator)
    decays[torch.rand(decays.shape, generator=generator, device=decays.device) < 1 / 64] = -100.0
    begins = chunk_begins(drawn["cu_seqlens"], case["num_tokens"], case["chunk_size"])
    return {**drawn, "g": sums_within_chunks(decays, begins)}


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    states: torch.Tensor,
    g: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    chunk_size: int,
    sm_scale: float,
) -> torch.Tensor:
    """query, key: (num_tokens, num_key_heads, head_dim); value, out: (num_tokens, num_value_heads, value_dim)."""
    group = value.shape[1] // key.shape[1]
    rows = chunk_rows(cu_seqlens, chunk_size)
    # (chunks, heads, tokens of a chunk, values) each; a missing token is zero everywhere.
    queries = gather_chunks(query, rows).transpose(1, 2).repeat_interleave(group, 1)
    keys = gather_chunks(key, rows).transpose(1, 2).repeat_interleave(group, 1)
    values = gather_chunks(value, rows).transpose(1, 2)
    scores = (queries @ keys.mT).tril()
    carried = queries @ states[: rows.shape[0]]
    if g is not None:
        sums = gather_chunks(g, rows).mT
        scores = scores * (sums[..., :, None] - sums[..., None, :]).tril().exp()
        carried = carried * sums.exp()[..., None]
    out = sm_scale * (carried + scores @ values)
    return scatter_chunks(out.transpose(1, 2), rows, value.shape[0])

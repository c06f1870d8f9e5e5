"""The triangular matrix of the delta rule's WY form (Yang et al., Gated Delta Networks, 2024), chunk by chunk."""

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
    """Random lengths, their chunks, and sums of log-decays: -0.04 a token on average, but -100 for one in 64."""
    drawn = draw_chunks(case, generator, count)
    decays = draw_log_decays((count, case["num_tokens"], case["num_value_heads"]), -0.04, generator)
    decays[torch.rand(decays.shape, generator=generator, device=decays.device) < 1 / 64] = -100.0
    begins = chunk_begins(drawn["cu_seqlens"], case["num_tokens"], case["chunk_size"])
    return {**drawn, "g": sums_within_chunks(decays, begins)}


def reference(
    key: torch.Tensor, beta: torch.Tensor, g: torch.Tensor | None, cu_seqlens: torch.Tensor, chunk_size: int
) -> torch.Tensor:
    """key: (num_tokens, num_key_heads, head_dim); beta, g: (num_tokens, num_value_heads)."""
    rows = chunk_rows(cu_seqlens, chunk_size)
    keys = gather_chunks(key, rows).transpose(1, 2)
    products = (keys @ keys.mT).repeat_interleave(beta.shape[1] // key.shape[1], 1)
    if g is not None:
        sums = gather_chunks(g, rows).mT
        products = products * (sums[..., :, None] - sums[..., None, :]).tril().exp()
    a = gather_chunks(beta, rows).mT[..., None] * products.tril(-1)
    return scatter_chunks(a.transpose(1, 2), rows, key.shape[0])

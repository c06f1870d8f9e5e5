"""The WY form of a product of Householder-like factors (Bischof and Van Loan, 1987) for the gated delta rule."""

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
    """Random lengths, their chunks, and log-decays of -0.03 a token on average, summed within chunks."""
    drawn = draw_chunks(case, generator, count)
    decays = draw_log_decays((count, case["num_tokens"], case["num_value_heads"]), -0.03, generator)
    begins = chunk_begins(drawn["cu_seqlens"], case["num_tokens"], case["chunk_size"])
    return {**drawn, "g": sums_within_chunks(decays, begins)}


def reference(
    key: torch.Tensor,
    value: torch.Tensor,
    beta: torch.Tensor,
    g: torch.Tensor,
    a: torch.Tensor,
    cu_seqlens: torch.Tensor,
    chunk_size: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """key: (num_tokens, num_key_heads, head_dim); w, u: (num_tokens, num_value_heads, head_dim or value_dim)."""
    rows = chunk_rows(cu_seqlens, chunk_size)
    keys = key.repeat_interleave(value.shape[1] // key.shape[1], 1) * (beta * g.exp())[..., None]
    inverse = gather_chunks(a, rows).transpose(1, 2).tril()

    def applied(to: torch.Tensor) -> torch.Tensor:
        chunks = inverse @ gather_chunks(to, rows).transpose(1, 2)
        return scatter_chunks(chunks.transpose(1, 2), rows, to.shape[0])

    return applied(keys), applied(value * beta[..., None])

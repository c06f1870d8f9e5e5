"""Discretisation of the state-space dual scan (Dao and Gu, Transformers are SSMs, 2024)."""

import torch

from arena.semantics.state_space import chunked


def reference(
    dt: torch.Tensor,
    A: torch.Tensor,
    dt_bias: torch.Tensor | None,
    dt_softplus: bool,
    dt_min: float,
    dt_max: float,
    chunk_size: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """dt: (batch, seq_len, num_heads); A, dt_bias: (num_heads,).

    dt_out, dA_cumsum: (batch, num_heads, num_chunks, chunk_size).
    """
    steps = dt if dt_bias is None else dt + dt_bias
    if dt_softplus:
        steps = torch.logaddexp(steps, torch.zeros_like(steps))
    dt_out = chunked(steps.clamp(dt_min, dt_max), chunk_size).movedim(-1, 1)
    return dt_out, (dt_out * A[:, None, None]).cumsum(-1)

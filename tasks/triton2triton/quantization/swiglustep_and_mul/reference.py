"""SwiGLU (Shazeer, GLU Variants Improve Transformer, 2020) with both factors clamped."""

import torch


def reference(x: torch.Tensor, limit: float) -> torch.Tensor:
    """x: (M, 2 * N), gates before ups; out: (M, N)."""
    gate, up = x.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate).clamp(max=limit) * up.clamp(-limit, limit)

"""Root-mean-square normalization (Zhang and Sennrich, 2019)."""

import torch


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x, y: (M, N); weight: (N,)."""
    inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)
    return x * inverse_rms * weight

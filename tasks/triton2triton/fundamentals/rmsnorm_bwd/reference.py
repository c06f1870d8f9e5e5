"""The gradients of root-mean-square normalization (Zhang and Sennrich, 2019)."""

import torch


def reference(dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """dy, x, dx: (M, N); weight, dweight: (N,)."""
    inverse_rms = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)
    normed = x * inverse_rms
    scaled = dy * weight
    dx = inverse_rms * (scaled - normed * (scaled * normed).mean(dim=-1, keepdim=True))
    return dx, (dy * normed).sum(dim=0)

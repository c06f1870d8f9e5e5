"""Root mean square layer normalization (Zhang and Sennrich, 2019), with what its backward pass needs."""

import torch


def reference(
    x: torch.Tensor, weight: torch.Tensor, eps: float, zero_centered: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, y: (M, N); weight: (N,); rstd: (M,)."""
    rstd = torch.rsqrt(x.square().mean(dim=-1) + eps)
    gain = weight + 1 if zero_centered else weight
    return x * rstd.unsqueeze(-1) * gain, rstd

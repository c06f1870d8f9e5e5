"""A linear layer."""

import torch


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """x: (M, K); weight: (N, K); bias: (N,) or None; out: (M, N)."""
    return torch.nn.functional.linear(x, weight, bias)

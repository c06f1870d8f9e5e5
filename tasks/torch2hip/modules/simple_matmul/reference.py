"""A matrix product whose right side is doubled first: the textbook definition."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a: (M, K); b: (K, N); c: (M, N)."""
    return a @ (b + b)

"""Batched matrix product."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a: (batch, M, K); b: (batch, K, N); out: (batch, M, N)."""
    return torch.bmm(a, b)

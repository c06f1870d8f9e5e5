"""Batched product of a vector and a matrix."""

import torch


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x: (batch, K); weight: (batch, K, N); y: (batch, N)."""
    return torch.einsum("bk,bkn->bn", x, weight)

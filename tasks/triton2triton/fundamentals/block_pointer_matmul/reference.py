"""The general matrix product of BLAS (Dongarra et al., 1990), untransposed, with leading dimensions."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, alpha: float, beta: float) -> torch.Tensor:
    """a: (M, K); b: (K, N); c before and after: (M, N)."""
    return alpha * (a @ b) + beta * c

"""The shortest matrix chain (Godbole, 1973)."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """a: (M, K); b: (K, N); c: (N, P); out: (M, P)."""
    return torch.linalg.multi_dot([a, b, c])

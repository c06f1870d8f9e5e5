"""Linear layer: matrix product and bias."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """a: (M, K); b: (K, N); bias: (N,) or None; out: (M, N)."""
    product = a @ b
    return product if bias is None else product + bias

"""Matrix product behind casts to a common dtype."""

import torch


def reference(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """a: (M, K); b: (K, N); out: (M, N)."""
    return a.to(dtype).double() @ b.to(dtype).double()

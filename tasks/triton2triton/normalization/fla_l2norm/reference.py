"""L2 normalization of queries and keys (as in DeltaNet, Schlag et al., 2021)."""

import torch


def reference(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """x, y: (M, N); rstd: (M,)."""
    rstd = (x.square().sum(dim=-1) + eps).rsqrt()
    return x * rstd[:, None], rstd

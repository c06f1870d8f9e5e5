"""The bottleneck adapter of Houlsby et al. (2019), with SiLU and without its residual connection."""

import torch


def reference(x: torch.Tensor, down: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """x: (M, K); down: (rank, K); up: (N, rank); out: (M, N)."""
    return torch.nn.functional.silu(x @ down.T) @ up.T

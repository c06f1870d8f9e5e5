"""The weight of an AWQ checkpoint (Lin et al., Activation-aware Weight Quantization, 2023)."""

import torch

from arena.semantics.packed import awq_weight


def reference(qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor) -> torch.Tensor:
    """qweight: (K, N / 8); scales: (K / group_size, N); qzeros: (K / group_size, N / 8); out: (K, N)."""
    return awq_weight(qweight, scales, qzeros)

"""Product with a 4-bit weight in the layout of AWQ (Lin et al., Activation-aware Weight Quantization, 2023)."""

import torch

from arena.semantics.packed import awq_weight


def reference(a: torch.Tensor, qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor) -> torch.Tensor:
    """a: (M, K); qweight: (K, N / 8); scales: (K / group_size, N); qzeros: (K / group_size, N / 8); out: (M, N)."""
    return a @ awq_weight(qweight, scales, qzeros)

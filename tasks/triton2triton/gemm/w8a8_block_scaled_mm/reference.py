"""Product of fp8 matrices whose blocks have scales (DeepSeek-V3 Technical Report, 2024, section 3.3)."""

import torch

from arena.semantics.quantize import blockwise


def reference(
    a: torch.Tensor, b: torch.Tensor, a_scales: torch.Tensor, b_scales: torch.Tensor, block_n: int, block_k: int
) -> torch.Tensor:
    """a: (M, K); b: (N, K); a_scales: (M, blocks of K); b_scales: (blocks of N, blocks of K); out: (M, N)."""
    weight = blockwise(b, b_scales, block_n, block_k)
    return blockwise(a, a_scales, 1, block_k) @ weight.T

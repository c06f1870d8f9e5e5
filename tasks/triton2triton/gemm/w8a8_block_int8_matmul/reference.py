"""Product of int8 matrices whose blocks have scales (the block scaling of DeepSeek-V3, 2024, with int8 values)."""

import torch

from arena.semantics.quantize import blockwise


def reference(
    a: torch.Tensor, b: torch.Tensor, a_scales: torch.Tensor, b_scales: torch.Tensor, block_n: int, block_k: int
) -> torch.Tensor:
    """a: (M, K); b: (N, K); a_scales: (M, blocks of K); b_scales: (blocks of N, blocks of K); out: (M, N)."""
    return blockwise(a, a_scales, 1, block_k) @ blockwise(b, b_scales, block_n, block_k).T

"""Product of quantized matrices, scaled by row and by column (Dettmers et al., LLM.int8(), 2022)."""

import torch


def reference(
    a: torch.Tensor, b: torch.Tensor, a_scales: torch.Tensor, b_scales: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    """a: (M, K); b: (K, N); a_scales: (M,) or (1,); b_scales: (N,) or (1,); bias: (N,) or None; out: (M, N)."""
    product = (a.to(a_scales.dtype) @ b.to(b_scales.dtype)) * a_scales.unsqueeze(1) * b_scales
    return product if bias is None else product + bias

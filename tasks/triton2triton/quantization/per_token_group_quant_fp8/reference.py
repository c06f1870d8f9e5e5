"""Group-wise absolute-maximum fp8 quantization (DeepSeek-V3 Technical Report, 2024, section 3.3)."""

import torch

from arena.semantics.quantize import fp8_codes, largest_of, scales_of


def reference(x: torch.Tensor, eps: float, group_size: int, fp8: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """x, q: (num_tokens, hidden); scales: (num_tokens, hidden // group_size)."""
    groups = x.unflatten(-1, (-1, group_size))
    scales = scales_of(groups, largest_of(fp8), eps)
    return fp8_codes(groups / scales.unsqueeze(-1), fp8).flatten(-2), scales

"""Group-wise absolute-maximum int8 quantization (Dettmers et al., LLM.int8(), 2022, with groups along a row)."""

import torch

from arena.semantics.quantize import INT8_MAX, int8_codes, scales_of


def reference(x: torch.Tensor, eps: float, group_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """x, q: (num_tokens, hidden); scales: (num_tokens, hidden // group_size)."""
    groups = x.unflatten(-1, (-1, group_size))
    scales = scales_of(groups, INT8_MAX, eps)
    return int8_codes(groups / scales.unsqueeze(-1)).flatten(-2), scales

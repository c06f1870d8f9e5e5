"""Row-wise absolute-maximum int8 quantization (Dettmers et al., LLM.int8(), 2022)."""

import torch

from arena.semantics.quantize import INT8_MAX, int8_codes, scales_of


def reference(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, q: (num_tokens, hidden); scales, sums: (num_tokens,)."""
    scales = scales_of(x, INT8_MAX, eps)
    return int8_codes(x / scales.unsqueeze(-1)), scales, x.sum(dim=-1)

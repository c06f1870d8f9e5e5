"""Group-wise absolute-maximum int8 quantization (Dettmers et al., LLM.int8(), 2022, with groups along a row)."""

import torch


def reference(x: torch.Tensor, eps: float, group_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """x, q: (num_tokens, hidden); scales: (num_tokens, hidden // group_size)."""
    groups = x.unflatten(-1, (-1, group_size))
    scales = groups.abs().amax(dim=-1).clamp(min=eps) / 127
    codes = torch.round(groups / scales.unsqueeze(-1)).clamp(-128, 127)
    return codes.flatten(-2).to(torch.int8), scales

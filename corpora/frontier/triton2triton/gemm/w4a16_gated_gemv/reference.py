"""SwiGLU (Shazeer, 2020) with 4-bit weights, a scale and a zero for each group (Frantar et al., GPTQ, 2022)."""

import torch
from torch.nn.functional import silu


def reference(
    x: torch.Tensor,
    gate_qweight: torch.Tensor,
    gate_scales: torch.Tensor,
    gate_zeros: torch.Tensor,
    up_qweight: torch.Tensor,
    up_scales: torch.Tensor,
    up_zeros: torch.Tensor,
    group_size: int,
) -> torch.Tensor:
    """x: (M, K); qweights: (K / 2, N) uint8; scales, zeros: (groups, N); out: (M, N)."""
    gate = x @ _weight(gate_qweight, gate_scales, gate_zeros, group_size)
    up = x @ _weight(up_qweight, up_scales, up_zeros, group_size)
    return silu(gate) * up


def _weight(qweight: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor, group_size: int) -> torch.Tensor:
    codes = torch.stack([qweight & 15, qweight >> 4], dim=1).flatten(0, 1)
    groups = torch.arange(len(codes), device=codes.device) // group_size
    return (codes.to(scales.dtype) - zeros.to(scales.dtype)[groups]) * scales[groups]

"""Layer normalization (Ba et al., 2016) by groups, or by root mean square, gated as in Mamba-2 (Dao and Gu, 2024)."""

import torch
from torch.nn.functional import silu


def reference(
    x: torch.Tensor,
    z: torch.Tensor | None,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    eps: float,
    norm_before_gate: bool,
    rms_norm: bool,
    group_size: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, z, y: (M, N); weight, bias: (N,); rstd: (M, N // group_size)."""
    gate = torch.ones_like(x) if z is None else silu(z)
    groups = (x if norm_before_gate else x * gate).unflatten(-1, (-1, group_size))
    if not rms_norm:
        groups = groups - groups.mean(dim=-1, keepdim=True)
    rstd = torch.rsqrt(groups.square().mean(dim=-1) + eps)
    y = (groups * rstd[..., None]).flatten(-2) * weight
    if bias is not None:
        y = y + bias
    return y * gate if norm_before_gate else y, rstd

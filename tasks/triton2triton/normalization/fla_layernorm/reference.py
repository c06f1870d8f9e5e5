"""Layer normalization (Ba et al., 2016) of a residual stream, with an optional SiLU gate."""

import torch


def reference(
    x: torch.Tensor,
    gate: torch.Tensor | None,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    residual: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, gate, residual, y: (M, N); weight, bias: (N,); mean, rstd: (M,)."""
    stream = residual + x
    variance, mean = torch.var_mean(stream, dim=-1, correction=0)
    rstd = torch.rsqrt(variance + eps)
    y = (stream - mean[:, None]) * rstd[:, None]
    if weight is not None:
        y = y * weight
    if bias is not None:
        y = y + bias
    if gate is not None:
        y = y * torch.nn.functional.silu(gate)
    return y, mean, rstd, stream

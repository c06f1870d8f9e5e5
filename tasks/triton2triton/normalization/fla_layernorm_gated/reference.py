"""Normalization and output gate of a head (as in gated delta networks, Yang et al., 2024)."""

import torch


def reference(
    x: torch.Tensor,
    gate: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    eps: float,
    sigmoid_gate: bool,
    rms_norm: bool,
) -> torch.Tensor:
    """x, gate, y: (num_tokens, num_heads, head_dim); weight, bias: (head_dim,)."""
    if rms_norm:
        normalized = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)
    else:
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        normalized = (x - mean) * torch.rsqrt(variance + eps)
    scaled = normalized * weight if bias is None else normalized * weight + bias
    return scaled * torch.sigmoid(gate) * (1 if sigmoid_gate else gate)

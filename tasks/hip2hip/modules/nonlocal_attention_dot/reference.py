"""Non-local block, dot-product form (Wang et al., 2018), with ELU after the inner convolutions."""

import torch
import torch.nn.functional as F


def reference(
    x: torch.Tensor,
    theta_weight: torch.Tensor,
    theta_bias: torch.Tensor,
    phi_weight: torch.Tensor,
    phi_bias: torch.Tensor,
    g_weight: torch.Tensor,
    g_bias: torch.Tensor,
    out_weight: torch.Tensor,
    out_bias: torch.Tensor,
) -> torch.Tensor:
    """x, y: (B, C, N); inner weights: (D, C), biases: (D,); out_weight: (C, D), out_bias: (C,)."""
    theta = F.elu(F.conv1d(x, theta_weight[..., None], theta_bias))
    phi = F.elu(F.conv1d(x, phi_weight[..., None], phi_bias))
    g = F.elu(F.conv1d(x, g_weight[..., None], g_bias))
    attention = theta.transpose(1, 2) @ phi / x.shape[-1]  # (B, N, N)
    attended = g @ attention.transpose(1, 2)
    return x + F.conv1d(attended, out_weight[..., None], out_bias)

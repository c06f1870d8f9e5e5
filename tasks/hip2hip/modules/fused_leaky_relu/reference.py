"""The bias, activation and gain that follow each convolution of StyleGAN2 (Karras et al., 2020)."""

import torch
import torch.nn.functional as F


def reference(x: torch.Tensor, bias: torch.Tensor, negative_slope: float, scale: float) -> torch.Tensor:
    """x, y: (B, C, S); bias: (C,)."""
    return F.leaky_relu(x + bias[:, None], negative_slope) * scale

"""Convolution over time, GELU, linear: the feed-forward block of text-to-speech transformers."""

import torch
import torch.nn.functional as F


def reference(
    x: torch.Tensor,
    conv_weight: torch.Tensor,
    conv_bias: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    causal: bool,
) -> torch.Tensor:
    """x, y: (B, L, D); conv_weight: (F, D, K); conv_bias: (F,); weight: (D, F); bias: (D,)."""
    taps = conv_weight.shape[-1]
    before = taps - 1 if causal else (taps - 1) // 2
    padded = F.pad(x.transpose(1, 2), (before, taps - 1 - before))
    hidden = F.gelu(F.conv1d(padded, conv_weight, conv_bias))
    return F.linear(hidden.transpose(1, 2), weight, bias)

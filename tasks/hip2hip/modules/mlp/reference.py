"""Seven linear layers with rectifiers between them."""

import torch
import torch.nn.functional as F


def reference(
    x: torch.Tensor,
    weight1: torch.Tensor,
    bias1: torch.Tensor,
    weight2: torch.Tensor,
    bias2: torch.Tensor,
    weight3: torch.Tensor,
    bias3: torch.Tensor,
    weight4: torch.Tensor,
    bias4: torch.Tensor,
    weight5: torch.Tensor,
    bias5: torch.Tensor,
    weight6: torch.Tensor,
    bias6: torch.Tensor,
    weight7: torch.Tensor,
    bias7: torch.Tensor,
) -> torch.Tensor:
    """x: (M, d0); weight1 … weight7: (d1, d0) … (d7, d6); bias1 … bias7: (d1,) … (d7,); y: (M, d7)."""
    weights = (weight1, weight2, weight3, weight4, weight5, weight6)
    biases = (bias1, bias2, bias3, bias4, bias5, bias6)
    for weight, bias in zip(weights, biases, strict=True):
        x = F.relu(F.linear(x, weight, bias))
    return F.linear(x, weight7, bias7)

"""The scaled inner product of image and sound features (Zhao et al., 2018), at every pair of positions."""

import torch


def reference(image: torch.Tensor, scale: torch.Tensor, sound: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """image: (B, C, P); scale: (C,); sound: (B, C, S); bias: (1,); y: (B, P, S)."""
    return torch.bmm(image.transpose(1, 2) * scale, sound) + bias

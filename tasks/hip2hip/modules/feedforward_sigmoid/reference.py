"""Two inputs, one above the other, through a two-layer perceptron that ends in a sigmoid."""

import torch
import torch.nn.functional as F


def reference(
    first: torch.Tensor,
    second: torch.Tensor,
    weight1: torch.Tensor,
    bias1: torch.Tensor,
    weight2: torch.Tensor,
    bias2: torch.Tensor,
) -> torch.Tensor:
    """first: (A, I); second: (B, I); weight1: (H, I); bias1: (H,); weight2: (O, H); bias2: (O,); y: (A + B, O)."""
    hidden = F.relu(F.linear(torch.vstack([first, second]), weight1, bias1))
    return torch.sigmoid(F.linear(hidden, weight2, bias2))

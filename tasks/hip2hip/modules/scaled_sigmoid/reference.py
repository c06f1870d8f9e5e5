"""The scaled sigmoid that bounds spectral masks (MetricGAN+, Fu et al., 2021)."""

import torch


def reference(x: torch.Tensor, slope: float, maximum: float) -> torch.Tensor:
    """x, y: (M, N)."""
    return maximum * torch.sigmoid(slope * x)

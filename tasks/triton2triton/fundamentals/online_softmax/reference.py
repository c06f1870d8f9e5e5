"""Softmax and its normalizer (Milakov and Gimelshein, Online normalizer calculation for softmax, 2018)."""

import torch


def reference(x: torch.Tensor, scale: float) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, y: (M, N); peak, total: (M,)."""
    scores = scale * x
    peak = scores.amax(dim=-1)
    powers = torch.exp(scores - peak.unsqueeze(-1))
    total = powers.sum(dim=-1)
    return powers / total.unsqueeze(-1), peak, total

"""Manifold-constrained hyper-connections (Xie et al., mHC, 2025): the residual streams after a layer."""

import torch


def reference(x: torch.Tensor, residual: torch.Tensor, post: torch.Tensor, comb: torch.Tensor) -> torch.Tensor:
    """x: (num_tokens, hidden); residual, out: (num_tokens, 4, hidden); post: (num_tokens, 4); comb: (..., 4, 4)."""
    out = post.unsqueeze(2) * x.unsqueeze(1)
    for stream in range(4):
        out = out + comb[:, stream].unsqueeze(2) * residual[:, stream].unsqueeze(1)
    return out

"""Scores of the shifted-window transformer (Liu et al., Swin, 2021), before their softmax."""

import torch


def reference(query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor, sm_scale: float) -> torch.Tensor:
    """query, key: (num_windows, num_heads, seq_len, head_dim); bias, out of a window: (num_heads, seq_len, seq_len)."""
    return sm_scale * (query @ key.transpose(-1, -2)) + bias

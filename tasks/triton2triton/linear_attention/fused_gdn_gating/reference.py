"""Decay and writing strength of Gated DeltaNet (Yang et al., 2024); the decay is that of Mamba-2 (Dao and Gu, 2024)."""

import torch
from torch.nn.functional import softplus


def reference(
    a: torch.Tensor, b: torch.Tensor, a_log: torch.Tensor, dt_bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """a, b, g, beta: (num_tokens, num_heads); a_log, dt_bias: (num_heads,)."""
    return -a_log.exp() * softplus(a + dt_bias, threshold=40.0), torch.sigmoid(b)

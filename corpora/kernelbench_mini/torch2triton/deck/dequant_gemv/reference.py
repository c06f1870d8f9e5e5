"""SwiGLU (Shazeer, 2020) of weights with 4-bit codes and a scale and a zero a group (Lin et al., AWQ, 2024)."""

import torch
from torch.nn.functional import silu


def reference(
    x: torch.Tensor,
    w_q_gate: torch.Tensor,
    scales_gate: torch.Tensor,
    zeros_gate: torch.Tensor,
    w_q_up: torch.Tensor,
    scales_up: torch.Tensor,
    zeros_up: torch.Tensor,
    group_size: int,
) -> torch.Tensor:
    """x: (M, K); w_q: (K / 2, N); scales, zeros: (groups, N); out: (M, N)."""
    gate = x @ _weight(w_q_gate, scales_gate, zeros_gate, group_size)
    up = x @ _weight(w_q_up, scales_up, zeros_up, group_size)
    return silu(gate) * up


def _weight(w_q: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor, group_size: int) -> torch.Tensor:
    """Return the weight, (K, N): two rows of it for each row of bytes."""
    rows = 2 * len(w_q)
    codes = torch.stack([w_q % 16, w_q // 16], dim=1).view(rows, -1).to(scales.dtype)
    each = [values.repeat_interleave(group_size, dim=0)[:rows] for values in (zeros, scales)]
    return (codes - each[0]) * each[1]

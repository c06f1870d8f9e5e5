"""Non-local block, dot-product form (Wang et al., 2018), with ELU after the inner convolutions."""

from typing import Any

import torch
import torch.nn.functional as F

from arena.semantics.uneven import make_uneven

_LONG_ROW = 32


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """phi_weight: normal numbers of deviation 1 / sqrt(C); one of each long row is 16 times that.

    The mean over positions hides much of what rounding does to phi; with such a row, 8 bits for its range are too few.
    """
    shape, device, std = (count, case["D"], case["C"]), generator.device, case["C"] ** -0.5
    weight = torch.empty(shape, dtype=case["dtype"], device=device).normal_(0, std, generator=generator)
    make_uneven(weight, generator, std=std)
    if case["C"] >= _LONG_ROW:
        raised = torch.randint(0, case["C"], (*shape[:2], 1), generator=generator, device=device)
        weight.scatter_(-1, raised, 16 * std)
    return {"phi_weight": weight}


def reference(
    x: torch.Tensor,
    theta_weight: torch.Tensor,
    theta_bias: torch.Tensor,
    phi_weight: torch.Tensor,
    phi_bias: torch.Tensor,
    g_weight: torch.Tensor,
    g_bias: torch.Tensor,
    out_weight: torch.Tensor,
    out_bias: torch.Tensor,
) -> torch.Tensor:
    """x, y: (B, C, N); inner weights: (D, C), biases: (D,); out_weight: (C, D), out_bias: (C,)."""
    theta = F.elu(F.conv1d(x, theta_weight[..., None], theta_bias))
    phi = F.elu(F.conv1d(x, phi_weight[..., None], phi_bias))
    g = F.elu(F.conv1d(x, g_weight[..., None], g_bias))
    attention = theta.transpose(1, 2) @ phi / x.shape[-1]  # (B, N, N)
    attended = g @ attention.transpose(1, 2)
    return x + F.conv1d(attended, out_weight[..., None], out_bias)

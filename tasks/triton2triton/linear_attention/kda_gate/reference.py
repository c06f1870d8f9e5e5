"""Gate of Kimi Delta Attention (Kimi Linear, 2025): a softplus, times a learned negative factor of the head."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Normal numbers on a grid on which sums are exact: no rounding carries one over the threshold."""
    row = (case["num_heads"], case["head_dim"])
    shapes = {"x": (count, case["num_tokens"], *row), "bias": (count, *row)}
    drawn = {n: torch.randn(s, generator=generator, device=generator.device) for n, s in shapes.items()}
    return {name: values.mul_(1024).round_().div_(1024) for name, values in drawn.items()}


def reference(
    x: torch.Tensor, a_log: torch.Tensor, bias: torch.Tensor | None, softplus_beta: float, threshold: float
) -> torch.Tensor:
    """x, g: (num_tokens, num_heads, head_dim); a_log: (num_heads,); bias: (num_heads, head_dim) or None."""
    y = x if bias is None else x + bias
    softplus = torch.logaddexp(torch.zeros_like(y), softplus_beta * y) / softplus_beta
    softplus = torch.where(softplus_beta * y > threshold, y, softplus)
    return -torch.exp(a_log)[:, None] * softplus

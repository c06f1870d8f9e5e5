"""Product of fp8 matrices with a scale for each output channel (Micikevicius et al., FP8 Formats, 2022)."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Scales of the size that weights with a deviation of 0.02 have, over as many decades as the case says."""
    mantissa, exponent = torch.rand(2, count, case["N"], generator=generator, device=generator.device)
    return {"weight_scale": 1e-4 * (1 + mantissa) * 10 ** (case["scale_decades"] * (exponent - 0.5))}


def reference(x: torch.Tensor, weight: torch.Tensor, weight_scale: torch.Tensor) -> torch.Tensor:
    """x: (M, K); weight: (N, K); weight_scale: (N,); out: (M, N)."""
    factors = torch.bfloat16 if x.element_size() == 1 else x.dtype
    return (x.to(factors) @ weight.to(factors).T) * weight_scale

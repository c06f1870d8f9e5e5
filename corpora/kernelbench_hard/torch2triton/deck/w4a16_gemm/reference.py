"""Product with 4-bit weights that have a scale and a zero for each group (Frantar et al., GPTQ, 2022)."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Scales of the size that weights with a deviation of 0.02 have, over as many decades as the case says."""
    shape = (count, case["K"] // case["group_size"], case["N"])
    mantissa, exponent = torch.rand(2, *shape, generator=generator, device=generator.device)
    return {"scales": 0.005 * (1 + mantissa) * 10 ** (case["scale_decades"] * (exponent - 0.5))}


def reference(x: torch.Tensor, w_q: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    """x: (M, K); w_q: (K / 2, N); scales, zeros: (K / group_size, N); out: (M, N)."""
    codes = torch.stack([w_q & 15, w_q >> 4], dim=1).flatten(0, 1).to(scales.dtype)
    grouped = codes.view(len(scales), -1, codes.shape[1])
    weight = (grouped - zeros[:, None]) * scales[:, None]
    return x @ weight.flatten(0, 1)

"""Layer normalization (Ba, Kiros and Hinton, 2016) by the unbiased standard deviation plus eps."""

from typing import Any

import torch


def reference(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """x, y: (M, N); gain, bias: (N,). Computed at least in float32, as such a layer is under mixed precision."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    deviation = wide - wide.mean(dim=-1, keepdim=True)
    return (gain * deviation / (wide.std(dim=-1, unbiased=True, keepdim=True) + eps) + bias).to(x.dtype)


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Rows of different mean and spread, the first element of each far from the others.

    Activations of transformers have such outliers. Here it also keeps a row of two elements from having almost
    no deviation, since the quotient would then be noise.
    """
    rows, dtype = (count, case["M"], 1), case["dtype"]
    chance: dict[str, Any] = {"generator": generator, "device": generator.device, "dtype": dtype}
    x = torch.rand(count, case["M"], case["N"], **chance).mul_(2.0).sub_(1.0)
    x[..., 0] += 4.0
    x *= 0.5 + 1.5 * torch.rand(rows, **chance)
    x += 3.0 * torch.randn(rows, **chance)
    return {"x": x}

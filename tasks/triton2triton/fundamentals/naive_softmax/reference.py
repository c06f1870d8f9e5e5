"""Softmax of rows, some of whose values are masked."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """x: normal numbers, one in eight of them -inf, but one of each row excepted; some rows begin with them."""
    shape = (count, case["M"], case["N"])
    x = torch.empty(shape, dtype=case["dtype"], device=generator.device).normal_(0, 2, generator=generator)
    make_uneven(x, generator, std=2.0)
    # Some rows reach far above 88, where exp overflows unless the maximum is subtracted; some, where their dtype can
    # hold it, so far that the maximum rounded to bfloat16 does not serve.
    factors = 30.0 ** torch.rand((*shape[:2], 1), generator=generator, device=generator.device)
    if x.dtype != torch.float16:
        far = torch.rand(factors.shape, generator=generator, device=generator.device) < 0.25
        factors = torch.where(far, 1e5, factors)
    x.mul_(factors.to(x.dtype))
    masked = torch.randint(0, 8, shape, generator=generator, device=generator.device, dtype=torch.int8) == 0
    # A causal mask or padding on the left: a kernel that rescales by exp(old peak - new peak) meets -inf - -inf.
    spared = torch.randint(0, case["N"], (*shape[:2], 1), generator=generator, device=generator.device)
    leading = torch.rand(spared.shape, generator=generator, device=generator.device) < 0.5
    masked |= leading & (torch.arange(case["N"], device=generator.device) < spared)
    masked.scatter_(2, spared, False)
    return {"x": x.masked_fill_(masked, -torch.inf)}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x, y: (M, N)."""
    return torch.softmax(x, dim=-1)

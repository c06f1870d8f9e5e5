"""Logarithm of the softmax along rows."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """x: normal numbers, one of each row 150 lower, so that 8 bits for the range of a row are too few."""
    shape, device = (count, case["M"], case["N"]), generator.device
    x = torch.empty(shape, dtype=case["dtype"], device=device).normal_(0, 3, generator=generator)
    make_uneven(x, generator, std=3.0)
    lowered = torch.randint(0, case["N"], (*shape[:2], 1), generator=generator, device=device)
    return {"x": x.scatter_(-1, lowered, x.gather(-1, lowered) - 150)}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x, y: (M, N)."""
    return x - torch.logsumexp(x, dim=-1, keepdim=True)

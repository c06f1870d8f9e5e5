"""Logarithm of the softmax along rows."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """x: normal numbers, one of each row 150 lower, so that 8 bits for the range of a row are too few.

    In float32 every other row on average also has one 150 higher: the maximum of a part of that row does not serve.
    """
    shape, chance = (count, case["M"], case["N"]), {"generator": generator, "device": generator.device}
    x = torch.empty(shape, dtype=case["dtype"], device=generator.device).normal_(0, 3, generator=generator)
    make_uneven(x, generator, std=3.0)
    rows = (*shape[:2], 1)
    x.scatter_add_(-1, torch.randint(0, case["N"], rows, **chance), x.new_full(rows, -150.0))
    if x.dtype == torch.float32:
        x.scatter_add_(-1, torch.randint(0, case["N"], rows, **chance), 150.0 * torch.rand(rows, **chance).round())
    return {"x": x}


def reference(x: torch.Tensor) -> torch.Tensor:
    """x, y: (M, N)."""
    return x - torch.logsumexp(x, dim=-1, keepdim=True)

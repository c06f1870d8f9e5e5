"""Softmax over the last axis (Bridle, 1990); torch subtracts the row's maximum."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven


def reference(x: torch.Tensor) -> torch.Tensor:
    """x, y: (M, N)."""
    return torch.softmax(x, dim=-1)


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Rows around plus or minus 115: exp(x) itself overflows float32 in one and vanishes in the other.

    Every fourth row has one element 100 above the others, at any place: the maximum of a part of the row will not do.
    """
    chance = {"generator": generator, "device": generator.device}
    signs = 2.0 * (torch.arange(case["M"], device=generator.device)[:, None] % 2) - 1.0
    x = 3.0 * torch.randn(count, case["M"], case["N"], **chance)
    make_uneven(x, generator, std=8.0)  # outliers of more than 88 overflow where the maximum is not theirs
    x += 115.0 * signs
    outlying = x[:, 3::4]
    places = torch.randint(0, case["N"], (*outlying.shape[:2], 1), **chance)
    outlying.scatter_(-1, places, 215.0)
    return {"x": x}

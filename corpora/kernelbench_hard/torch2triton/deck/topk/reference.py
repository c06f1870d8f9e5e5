"""The greatest elements of rows, for which kernels use sorting networks (Batcher, 1968) or selection by digits."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Normal rows, uneven in most sets; rounded to steps, and minus infinity in places, where the case says so."""
    shape = (count, case["batch"], case["n"])
    x = torch.randn(shape, generator=generator, device=generator.device)
    make_uneven(x, generator)
    if case["steps"]:
        x = torch.round(x * case["steps"]) / case["steps"]
    if case["percent_infinite"]:
        lot = torch.rand(shape, generator=generator, device=generator.device)
        x = torch.where(lot < case["percent_infinite"] / 100, -torch.inf, x)
    return {"x": x + 0.0}  # -0 becomes 0


def reference(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """x: (batch, n); values, indices: (batch, k)."""
    values, indices = torch.topk(x, k, dim=-1)
    return values, indices


def regret(x: torch.Tensor, k: int, indices: torch.Tensor) -> dict[str, torch.Tensor]:
    """1 where an index is out of range, occurs twice in its row or points to another value than the j-th greatest."""
    valid = (indices >= 0) & (indices < x.shape[1])
    places = torch.where(valid, indices, 0)
    right = valid & (x.gather(1, places) == torch.topk(x, k, dim=-1).values)
    rising, order = places.sort(dim=-1)
    repeated = torch.zeros_like(right)
    repeated[:, 1:] = rising[:, 1:] == rising[:, :-1]
    repeated = torch.zeros_like(repeated).scatter(1, order, repeated)
    return {"indices": torch.where(right & ~repeated, 0.0, 1.0)}

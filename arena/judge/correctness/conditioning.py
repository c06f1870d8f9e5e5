"""Tolerate in a small output the error that rounding alone could cause.

An honest kernel must not fail because its inputs happened to cancel.

Errors are measured against the scale of the whole output. One of a few elements has hardly any: `a * b + c` of random
numbers comes near 0 once in some thousand draws, and then the rounding of `a * b` alone is more than is allowed.
The remedy is the backward view of errors (Wilkinson, 1963): right is also what would be right for inputs that differ
from the true ones by a few roundings of float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from arena.task.definition import Arguments, Precision, Tensor, Tolerance
from arena.task.numerics.comparison import error_ratio
from arena.task.numerics.reference import FEW, Reference

if TYPE_CHECKING:
    import torch

MARGIN = 0.5
"""a baseline's error, as a share of the tolerance, stays below this; what is above is checked more closely"""
MOST = 24.0
"""no more than so many times the least tolerance is accepted"""
_ROUNDING = 2.0**-21
"""some roundings of float32 (2**-24), as sums of hundreds of terms have"""
_TRIES = 4
_SAFETY = 2.0


def may_be_rounding(ratio: float, tensor: Tensor, arguments: Arguments) -> bool:
    """Return whether an error of `ratio` times the tolerance calls for the closer check."""
    return is_small(tensor, arguments) and MARGIN < ratio < math.inf


def is_small(tensor: Tensor, arguments: Arguments) -> bool:
    """Return whether an output has so few elements that rounding of the inputs may excuse an error."""
    return tensor.numel <= FEW and tensor.dtype == "float32" and arguments.task.precision is Precision.FLOAT64


def leeway(
    arguments: Arguments,
    reference: Reference,
    inputs: Mapping[str, torch.Tensor],
    name: str,
    wanted: torch.Tensor,
    tolerance: Tolerance,
) -> float:
    """Return how many times the least tolerance `name` may be off from `wanted`, 1 to `MOST`.

    Twice what changes in `wanted` where every floating input is changed by up to one part in 2**21 at random, four
    times.
    """
    worst = 1.0
    for _ in range(_TRIES):
        moved = reference(arguments, {key: _moved(values) for key, values in inputs.items()})[name]
        ratio = float(error_ratio(moved.to(wanted.device), wanted, tolerance, "float32"))
        worst = max(worst, _SAFETY * ratio)
    return min(worst, MOST)


def _moved(values: torch.Tensor) -> torch.Tensor:
    import torch

    if not values.is_floating_point():
        return values
    exact = values.to(torch.float64)
    return exact * (1 + _ROUNDING * (2 * torch.rand_like(exact) - 1))

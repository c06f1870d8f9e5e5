"""Estimates with 95 % intervals: a bootstrap over tasks, and a score interval where the bootstrap says nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES = 4000
SEED = 20_240_731
FEW_TASKS = 10
_Z = 1.959963984540054
_TAILS = (100 * (1 - LEVEL) / 2, 100 * (1 + LEVEL) / 2)


class Method(StrEnum):
    """Where an interval comes from."""

    BOOTSTRAP = "bootstrap"
    WILSON = "wilson"
    NEWCOMBE = "newcombe"
    NONE = "none"


@dataclass(frozen=True)
class Quantity:
    """A number with its 95 % interval; the bounds are None where the data can give none (one task).

    `count` is the denominator: how many trials, cases or tasks the number is taken over.
    """

    value: float
    low: float | None
    high: float | None
    tasks: int
    method: Method
    count: float

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two bounds or none")
        if self.low is not None and self.high is not None and not self.low <= self.value <= self.high:
            raise ValueError(f"interval [{self.low}, {self.high}] does not hold its estimate {self.value}")


class Tally(NamedTuple):
    """What one task adds to a measure: the measure is the sum of totals over the sum of weights."""

    total: float
    weight: float


NOTHING = Tally(0.0, 0.0)


def identity(value: float) -> float:
    """Return the value itself."""
    return value


def estimate(
    tallies: Sequence[Tally], *, proportion: bool = False, transform: Callable[[float], float] = identity
) -> Quantity | None:
    """Sum of totals over sum of weights, transformed, with its interval; None where no task has weight.

    Tasks are resampled, each with all its attempts, since attempts at one task are not independent. `transform`
    must not decrease. A proportion of few tasks, or of 0 or 1, gets the Wilson interval instead.
    """
    counted = np.array([tally for tally in tallies if tally.weight > 0], dtype=float).reshape(-1, 2)
    tasks = len(counted)
    if not tasks:
        return None
    count = float(counted[:, 1].sum())
    ratio = float(counted[:, 0].sum()) / count
    if proportion and (tasks < FEW_TASKS or ratio <= 0 or ratio >= 1):
        low, high = wilson(ratio, tasks)
        return Quantity(ratio, low, high, tasks, Method.WILSON, count)
    value = transform(ratio)
    if tasks < 2:
        return Quantity(value, None, None, tasks, Method.NONE, count)
    low, high = (transform(bound) for bound in _resampled(counted))
    return Quantity(value, min(low, value), max(high, value), tasks, Method.BOOTSTRAP, count)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Score interval of a proportion (Wilson, 1927); never empty, also at 0 and 1."""
    spread = _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    scale = 1 + _Z**2 / count
    centre = share + _Z**2 / (2 * count)
    return min(share, max(0.0, (centre - spread) / scale)), max(share, min(1.0, (centre + spread) / scale))


def difference(firsts: Sequence[float], seconds: Sequence[float]) -> Quantity | None:
    """Mean paired difference of shares, second minus first, one pair a task.

    Where all differences are equal the bootstrap collapses; the interval is then the one that combines the two
    score intervals (Newcombe, 1998, method 10), which is too wide rather than too narrow for paired data.
    """
    if not firsts:
        return None
    gaps = [second - first for first, second in zip(firsts, seconds, strict=True)]
    if len(set(gaps)) > 1:
        return estimate([Tally(gap, 1) for gap in gaps])
    count = len(gaps)
    first, second = sum(firsts) / count, sum(seconds) / count
    (low1, high1), (low2, high2) = wilson(first, count), wilson(second, count)
    value = second - first
    low = value - math.hypot(second - low2, high1 - first)
    high = value + math.hypot(high2 - second, first - low1)
    return Quantity(value, max(-1.0, low), min(1.0, high), count, Method.NEWCOMBE, count)


def _resampled(counted: NDArray[np.float64]) -> tuple[float, float]:
    sums = _resamples(len(counted)) @ counted
    ratios = sums[:, 0] / sums[:, 1]
    low, high = np.percentile(ratios, _TAILS)
    return float(low), float(high)


@lru_cache(maxsize=32)
def _resamples(tasks: int) -> NDArray[np.float64]:
    """How often each task is drawn, one row a resample; the same rows for every measure, so that they go together."""
    draws = np.random.default_rng(SEED).multinomial(tasks, np.full(tasks, 1 / tasks), size=RESAMPLES)
    return draws.astype(float)

"""Estimates with 95 % intervals: a bootstrap over tasks, and a score interval where the bootstrap says nothing.

Measures of speed carry the errors of their timings, which are added to every draw of the bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arena.results.record import Estimate

LEVEL = 0.95
RESAMPLES = 4000
SEED = 20_240_731
FEW_TASKS = 10
NORMAL_QUANTILE = 1.959963984540054
_TAILS = (100 * (1 - LEVEL) / 2, 100 * (1 + LEVEL) / 2)


class Method(StrEnum):
    """Where an interval comes from."""

    BOOTSTRAP = "bootstrap"
    BOOTSTRAP_AND_TIMING = "bootstrap_and_timing"
    TIMING = "timing"
    WILSON = "wilson"
    PAIRED_T = "paired_t"
    SIGN_TEST = "sign_test"
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
    """What one task adds to a measure: the measure is the sum of totals over the sum of weights.

    `error`: the standard error of the total that comes from timings, in the total's unit.
    """

    total: float
    weight: float
    error: float = 0.0


NOTHING = Tally(0.0, 0.0)


def log_error(timed: Estimate) -> float:
    """Return the standard error of the logarithm of a speedup, from its 95 % interval."""
    half = math.log(timed.high / timed.low) / 2 if timed.low > 0 else math.log(timed.high / timed.value)
    return half / NORMAL_QUANTILE


def with_log_error(value: float, error: float) -> Estimate:
    """Return a speedup with the 95 % interval that follows from the standard error of its logarithm."""
    return Estimate(value, value * math.exp(-NORMAL_QUANTILE * error), value * math.exp(NORMAL_QUANTILE * error))


def estimate(tallies: Sequence[Tally], *, proportion: bool = False, log: bool = False) -> Quantity | None:
    """Sum of totals over sum of weights, with its interval; None where no task has weight.

    A task without weight that has a total, such as the cost of a task that was not solved, counts too. Where a draw
    of tasks may hold no weight, there is no interval.

    Tasks are resampled, each with all its attempts, since attempts at one task are not independent. In every draw
    each task's logarithm is also off by a normal error of its timings. A proportion of few tasks, or of 0 or 1, gets
    the Wilson interval instead.

    Args:
        tallies: one per task; with errors, their sum is positive or a logarithm.
        proportion: the measure is a share of trials or cases.
        log: totals are logarithms, and the estimate is exp of their mean.
    """
    counted = np.array([tally for tally in tallies if tally.weight > 0 or tally.total], dtype=float).reshape(-1, 3)
    tasks, count = len(counted), float(counted[:, 1].sum())
    if not count:
        return None
    ratio = float(counted[:, 0].sum()) / count
    if proportion and (tasks < FEW_TASKS or ratio <= 0 or ratio >= 1):
        low, high = wilson(ratio, tasks)
        return Quantity(ratio, low, high, tasks, Method.WILSON, count)
    value = math.exp(ratio) if log else ratio
    timing = float(_timing_error(np.ones(tasks), counted, log)) if counted[:, 2].any() else 0.0
    if (tasks < 2 and not timing) or not (_resamples(tasks) @ counted[:, 1]).all():
        return Quantity(value, None, None, tasks, Method.NONE, count)
    low, high = value * math.exp(-NORMAL_QUANTILE * timing), value * math.exp(NORMAL_QUANTILE * timing)
    if tasks < 2:
        return Quantity(value, low, high, tasks, Method.TIMING, count)
    drawn = _drawn(counted, log, bool(timing))
    low, high = min(low, value, drawn[0]), max(high, value, drawn[1])
    return Quantity(value, low, high, tasks, Method.BOOTSTRAP_AND_TIMING if timing else Method.BOOTSTRAP, count)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Score interval of a proportion (Wilson, 1927); never empty, also at 0 and 1."""
    spread = NORMAL_QUANTILE * math.sqrt(share * (1 - share) / count + NORMAL_QUANTILE**2 / (4 * count**2))
    scale = 1 + NORMAL_QUANTILE**2 / count
    centre = share + NORMAL_QUANTILE**2 / (2 * count)
    return min(share, max(0.0, (centre - spread) / scale)), max(share, min(1.0, (centre + spread) / scale))


def _drawn(counted: NDArray[np.float64], log: bool, timed: bool) -> tuple[float, float]:
    """Percentiles over draws of tasks; with errors of timings, every draw counts with its error up and down.

    The mirrored errors keep intervals of a ratio and of its inverse each other's inverse.
    """
    draws = _resamples(len(counted))
    sums = draws @ counted[:, :2]
    values = sums[:, 0] / sums[:, 1]
    values = np.exp(values) if log else values
    if timed:
        off = _normals() * _timing_error(draws, counted, log)
        values = np.concatenate([values * np.exp(-off), values * np.exp(off)])
    low, high = np.percentile(values, _TAILS)
    return float(low), float(high)


def _timing_error(draws: NDArray[np.float64], counted: NDArray[np.float64], log: bool) -> NDArray[np.float64]:
    """Return the standard error of the logarithm of the measure in every draw, errors of tasks in quadrature."""
    scale = draws @ counted[:, 1 if log else 0]
    error: NDArray[np.float64] = np.sqrt(draws @ counted[:, 2] ** 2) / np.where(scale > 0, scale, np.inf)
    return error


@lru_cache(maxsize=1)
def _normals() -> NDArray[np.float64]:
    """One standard normal value a resample, the same for every measure."""
    return np.random.default_rng(SEED + 1).standard_normal(RESAMPLES)


@lru_cache(maxsize=32)
def _resamples(tasks: int) -> NDArray[np.float64]:
    """How often each task is drawn, one row a resample; the same rows for every measure, so that they go together."""
    drawn = np.random.default_rng(SEED).integers(tasks, size=(RESAMPLES, tasks))
    places = drawn + tasks * np.arange(RESAMPLES)[:, None]
    return np.bincount(places.ravel(), minlength=RESAMPLES * tasks).reshape(RESAMPLES, tasks).astype(float)

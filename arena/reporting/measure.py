"""Measures, and the two kinds of which most are: shares of planned trials, and means over tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from arena.reporting.intervals import NOTHING, Quantity, Tally
from arena.reporting.rows import TrialRow

Attempts = Sequence[TrialRow]
"""The attempts of one agent at one task."""


class Unit(StrEnum):
    """How a measure is written: a share of one in per cent, a factor with ×, or a plain number."""

    SHARE = "share"
    FACTOR = "factor"
    PLAIN = "plain"


@dataclass(frozen=True)
class Measure:
    """One measure. `timed`: it rests on latencies; `proportion`: it is a share of trials or cases that did something.

    `log`: its totals are logarithms. `own_count`: its denominator is not the plan, and stands beside it. `applies`
    says whether a group of trials can state it at all, `attempts` how many attempts the plan must have. `of_rows`
    takes the place of `mean` for what is no quotient of sums.
    """

    name: str
    title: str
    unit: Unit
    mean: Callable[[Attempts], Tally] | None = None
    best: Callable[[Attempts], Tally] | None = None
    timed: bool = False
    proportion: bool = False
    own_count: bool = False
    log: bool = False
    applies: Callable[[Sequence[TrialRow]], bool] = bool
    attempts: int = 1
    of_rows: Callable[[Sequence[TrialRow]], Quantity | None] | None = None


def heldout_known(rows: Sequence[TrialRow]) -> bool:
    """Whether held-out correctness can be stated: no trial was correct on seen cases, or one went on to held-out."""
    correct = [row for row in rows if row.correct]
    return bool(rows) and (not correct or any(row.heldout_ran for row in correct))


def timed(rows: Sequence[TrialRow]) -> bool:
    """Return whether any trial has a valid speedup, without which a group says nothing of speed."""
    return any(row.speedup is not None for row in rows)


def share(
    name: str,
    title: str,
    holds: Callable[[TrialRow], bool],
    *,
    timed: bool = False,
    applies: Callable[[Sequence[TrialRow]], bool] = bool,
) -> Measure:
    """Share of planned trials for which something holds; best: of tasks for which it holds at least once."""
    return Measure(
        name,
        title,
        Unit.SHARE,
        mean=lambda attempts: Tally(sum(map(holds, attempts)), len(attempts)),
        best=lambda attempts: Tally(any(map(holds, attempts)), 1),
        timed=timed,
        proportion=True,
        applies=applies,
    )


def average(
    name: str,
    title: str,
    unit: Unit,
    value: Callable[[TrialRow], float | None],
    *,
    log: bool = False,
    error: Callable[[TrialRow], float] = lambda row: 0.0,
    applies: Callable[[Sequence[TrialRow]], bool] = bool,
) -> Measure:
    """Mean over tasks of the mean over a task's attempts that have a value, on the log scale where `log`.

    `error`: the standard error of a trial's value that comes from its timings, on the same scale.
    """

    def values(attempts: Attempts) -> list[tuple[float, float]]:
        known = [(value(row), error(row)) for row in attempts]
        return [(math.log(one) if log else one, off) for one, off in known if one is not None]

    def mean(attempts: Attempts) -> Tally:
        known = values(attempts)
        count = len(known)
        return Tally(sum(one for one, _ in known) / count, 1, _quadrature(known) / count) if known else NOTHING

    def best(attempts: Attempts) -> Tally:
        known = values(attempts)
        return Tally(max(known)[0], 1, max(known)[1]) if known else NOTHING

    return Measure(name, title, unit, mean, best, timed=True, log=log, applies=applies)


def _quadrature(known: Sequence[tuple[float, float]]) -> float:
    return math.hypot(*(off for _, off in known))

"""Measures, and the two kinds of which most are: shares of planned trials, and means over tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from arena.reports.intervals import NOTHING, Quantity, Tally
from arena.reports.rows import TrialRow

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
    takes the place of `mean` for what is no quotient of sums. `families`: `mean` and `best` take all attempts at the
    tasks of one family, and families are drawn for the interval.
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
    families: bool = False


def heldout_known(rows: Sequence[TrialRow]) -> bool:
    """Return whether held-out correctness can be stated.

    Either no trial was correct on seen cases, or one went on to held-out cases.
    """
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


def by_task(rows: Iterable[TrialRow]) -> list[Attempts]:
    """Return the attempts at every task, together."""
    return _together(rows, lambda row: row.task)


def by_family(rows: Iterable[TrialRow]) -> list[Attempts]:
    """Return the attempts at all tasks of every family, together."""
    return _together(rows, lambda row: row.family)


def over_families(measure: Measure, name: str, title: str) -> Measure:
    """Return an average which weights families of tasks equally: the mean over families of the mean over their tasks.

    Args:
        measure: an `average`, of which every task adds a total of weight 1 or nothing.
        name: of the new measure.
        title: of the new measure.
    """

    def across(tally: Callable[[Attempts], Tally]) -> Callable[[Attempts], Tally]:
        def of_family(attempts: Attempts) -> Tally:
            tallies = [tally(task) for task in by_task(attempts)]
            weight = sum(one.weight for one in tallies)
            if not weight:
                return NOTHING
            total, error = sum(one.total for one in tallies), math.hypot(*(one.error for one in tallies))
            return Tally(total / weight, 1, error / weight)

        return of_family

    if measure.mean is None or measure.best is None:
        raise ValueError(f"{measure.name} is no mean over tasks")
    return replace(
        measure,
        name=name,
        title=title,
        mean=across(measure.mean),
        best=across(measure.best),
        applies=lambda rows: measure.applies(rows) and all(row.family for row in rows),
        families=True,
    )


def _together(rows: Iterable[TrialRow], key: Callable[[TrialRow], str]) -> list[Attempts]:
    found: dict[str, list[TrialRow]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.values())


def _quadrature(known: Sequence[tuple[float, float]]) -> float:
    return math.hypot(*(off for _, off in known))

"""Every measure, defined once: what a task adds to it, its unit, and whether it rests on latencies.

Formulas and sources: docs/evaluate/measures.md. A measure is a sum of totals over tasks, divided by a sum of weights.
The mean over a task's attempts is the default; `best` takes the best attempt instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from arena.reporting.case_frame import HeldoutOutcome
from arena.reporting.intervals import NOTHING, Tally, log_error
from arena.reporting.rows import CaseRow, TrialRow
from arena.reporting.scores import SPEEDUP_POINTS
from arena.reporting.targets import checked, portable

Attempts = Sequence[TrialRow]
"""The attempts of one agent at one task."""

FAST_P = (0.0, 0.5, 1.0, 1.5, 2.0, 4.0)


class Unit(StrEnum):
    """How a measure is written: a share of one in per cent, a factor with ×, or a plain number."""

    SHARE = "share"
    FACTOR = "factor"
    PLAIN = "plain"


@dataclass(frozen=True)
class Measure:
    """One measure. `timed`: it rests on latencies; `proportion`: it is a share of trials or cases that did something.

    `log`: its totals are logarithms. `own_count`: its denominator is not the plan, and stands beside it. `applies`
    says whether a group of trials can state it at all.
    """

    name: str
    title: str
    unit: Unit
    mean: Callable[[Attempts], Tally]
    best: Callable[[Attempts], Tally] | None = None
    timed: bool = False
    proportion: bool = False
    own_count: bool = False
    log: bool = False
    applies: Callable[[Sequence[TrialRow]], bool] = bool


def heldout_known(rows: Sequence[TrialRow]) -> bool:
    """Whether held-out correctness can be stated: no trial was correct on seen cases, or one went on to held-out."""
    correct = [row for row in rows if row.correct]
    return bool(rows) and (not correct or any(row.heldout_ran for row in correct))


def timed(rows: Sequence[TrialRow]) -> bool:
    """Return whether any trial has a valid speedup, without which a group says nothing of speed."""
    return any(row.speedup is not None for row in rows)


def fast(row: TrialRow, threshold: float) -> bool:
    """Return whether the trial is correct, with a valid speedup above the threshold (KernelBench's fast_p)."""
    return row.speedup is not None and row.speedup.value > threshold


def _share(
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


def _average(
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


def _log_error(row: TrialRow) -> float:
    """Return the standard error of the logarithm of a trial's speedup; 0 where it has none."""
    return log_error(row.speedup) if row.speedup else 0.0


def _speedup_error(row: TrialRow) -> float:
    return row.speedup.value * log_error(row.speedup) if row.speedup else 0.0


def _points_error(row: TrialRow) -> float:
    return SPEEDUP_POINTS * _speedup_error(row)


def _retention_error(row: TrialRow) -> float:
    return math.hypot(_log_error(row), log_error(row.heldout_speedup)) if row.heldout_speedup else 0.0


def _case_share(name: str, title: str, holds: Callable[[CaseRow], bool], among: Callable[[CaseRow], bool]) -> Measure:
    """Share of judged held-out cases, of those in `among`, for which something holds; of trials tried on them."""

    def mean(attempts: Attempts) -> Tally:
        cases = [case for row in filter(tried, attempts) for case in row.cases if case.outcome and among(case)]
        return Tally(sum(map(holds, cases)), len(cases))

    return Measure(name, title, Unit.SHARE, mean, proportion=True, own_count=True)


def tried(row: TrialRow) -> bool:
    """Return whether a trial was right on every seen case and went on to held-out ones: it can drop."""
    return row.correct and row.heldout_ran


def _lost(attempts: Attempts) -> Tally:
    among = list(filter(tried, attempts))
    return Tally(sum(not row.heldout_correct for row in among), len(among))


def _best_lost(attempts: Attempts) -> Tally:
    among = list(filter(tried, attempts))
    return Tally(bool(among) and not any(row.heldout_correct for row in among), bool(among))


def _portable(attempts: Attempts) -> Tally:
    return Tally(sum(map(portable, attempts)), sum(map(checked, attempts)))


def _best_portable(attempts: Attempts) -> Tally:
    return Tally(any(map(portable, attempts)), any(map(checked, attempts)))


def _speedup(row: TrialRow) -> float | None:
    return row.speedup.value if row.speedup else None


def _sol(row: TrialRow) -> float | None:
    """A failed trial scores 0; a passed one on a device or number format without a known peak has no score."""
    return row.sol if row.speedup is not None else 0.0


def _sol_known(rows: Sequence[TrialRow]) -> bool:
    return any(row.sol is not None for row in rows)


def _fast_p(threshold: float) -> Measure:
    name = f"fast_{threshold:g}"
    title = f"correct and faster than {threshold:g}×, of planned trials"
    return _share(name, title, lambda row: fast(row, threshold), timed=True, applies=timed)


MEASURES: tuple[Measure, ...] = (
    _share("compile_rate", "compiled, of planned trials", lambda row: row.compiled),
    _share("correctness_rate", "correct on seen cases, of planned trials", lambda row: row.correct),
    _share("performance_rate", "passed performance, of planned trials", lambda row: row.performed, timed=True),
    _share(
        "heldout_correctness_rate",
        "correct on held-out cases too, of planned trials",
        lambda row: row.heldout_correct,
        applies=heldout_known,
    ),
    Measure(
        "correctness_drop",
        "correctness drop, trials tried on held-out cases",
        Unit.SHARE,
        _lost,
        _best_lost,
        proportion=True,
        own_count=True,
    ),
    _case_share(
        "case_correctness_drop",
        "correctness drop, held-out cases of those trials",
        lambda case: not case.correct,
        lambda case: True,
    ),
    _case_share(
        "conditional_correctness",
        "held-out cases correct where the baseline is",
        lambda case: case.outcome is HeldoutOutcome.BOTH_PASS,
        lambda case: case.outcome in (HeldoutOutcome.BOTH_PASS, HeldoutOutcome.REGRESSION),
    ),
    Measure(
        "portability",
        "builds for every checked target",
        Unit.SHARE,
        _portable,
        _best_portable,
        proportion=True,
        own_count=True,
    ),
    _average(
        "mean_speedup",
        "mean speedup of correct tasks",
        Unit.FACTOR,
        _speedup,
        error=_speedup_error,
    ),
    _average(
        "geomean_speedup",
        "geometric mean speedup, failures as 1",
        Unit.FACTOR,
        lambda row: row.speedup.value if row.speedup else 1.0,
        log=True,
        error=_log_error,
        applies=timed,
    ),
    *map(_fast_p, FAST_P),
    _average(
        "speedup_retention",
        "speedup retention",
        Unit.FACTOR,
        lambda row: row.retention,
        log=True,
        error=_retention_error,
    ),
    _average("points", "points", Unit.PLAIN, lambda row: row.points, error=_points_error),
    _average("reward", "dense reward", Unit.PLAIN, lambda row: row.reward),
    _average("roofline_fraction", "fraction of the roofline", Unit.SHARE, lambda row: row.roofline, log=True),
    _average("sol_score", "SOL score", Unit.PLAIN, _sol, applies=_sol_known),
)

BY_NAME = {measure.name: measure for measure in MEASURES}

"""Every measure, defined once: what a task adds to it, its unit, and whether it rests on latencies.

Formulas and sources: docs/evaluate/measures.md. A measure is a sum of totals over tasks, divided by a sum of weights.
The mean over a task's attempts is the default; `best` takes the best attempt instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from arena.reports.intervals import NOTHING, Tally, log_error
from arena.reports.measure import Attempts, Measure, Unit, average, heldout_known, over_families, share, timed
from arena.reports.rows import CaseRow, TrialRow
from arena.reports.spending import SPENDING
from arena.reports.targets import checked, portable
from arena.results.failures import FailureClass
from arena.results.outcome import HeldoutOutcome, Outcome
from arena.results.reward import BREAK_EVEN, bounded_reward
from arena.results.scales import SPEEDUP_POINTS, pass_at_k

AT_K = tuple(2**power for power in range(11))
"""1, 2, 4, …, 1024: as many of these as the plan has attempts are in a report"""
FAST_P = (0.0, 0.5, 1.0, 1.5, 2.0, 4.0)


def fast(row: TrialRow, threshold: float) -> bool:
    """Return whether the trial is correct, with a valid speedup above the threshold (KernelBench's fast_p)."""
    return row.speedup is not None and row.speedup.value > threshold


def _log_error(row: TrialRow) -> float:
    """Return the standard error of the logarithm of a trial's speedup; 0 where it has none."""
    return log_error(row.speedup) if row.speedup else 0.0


def gain_error(row: TrialRow) -> float:
    """Return the standard error of the logarithm of a trial's gain; 0 where it gains nothing."""
    return log_error(row.gain) if row.gain else 0.0


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
    """Return whether a trial was right on every seen case and judged on held-out ones: it can drop."""
    return row.outcome in (Outcome.SOLVED, Outcome.OVERFIT)


def _lost(attempts: Attempts) -> Tally:
    among = list(filter(tried, attempts))
    return Tally(sum(not row.solved for row in among), len(among))


def _best_lost(attempts: Attempts) -> Tally:
    among = list(filter(tried, attempts))
    return Tally(bool(among) and not any(row.solved for row in among), bool(among))


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
    return share(name, title, lambda row: fast(row, threshold), timed=True, applies=timed)


def _pass_at(name: str, title: str, holds: Callable[[TrialRow], bool], k: int) -> Measure:
    """Mean over tasks of the unbiased chance that one of k attempts does it; tasks with fewer attempts are left out."""

    def mean(attempts: Attempts) -> Tally:
        count = len(attempts)
        return Tally(pass_at_k(count, sum(map(holds, attempts)), k), 1) if count >= k else NOTHING

    applies = heldout_known if name == "solved" else bool
    return Measure(
        f"{name}_at_{k}", f"{title} in one of {k}", Unit.SHARE, mean, proportion=True, applies=applies, attempts=k
    )


def bounded(row: TrialRow) -> float | None:
    """A failed trial earns 0; one that passed without a timing has no value."""
    if row.speedup is None:
        return None if row.performed else 0.0
    return bounded_reward(row.speedup.value, overfit=row.outcome is Outcome.OVERFIT)


def _bounded_error(row: TrialRow) -> float:
    faster = row.speedup is not None and row.speedup.value > BREAK_EVEN and row.outcome is not Outcome.OVERFIT
    return BREAK_EVEN / row.speedup.value * log_error(row.speedup) if row.speedup and faster else 0.0


def relative(row: TrialRow) -> float | None:
    """Return the speedup over the expert's at the same task, or None where one of both has none."""
    return row.speedup.value / row.expert.value if row.speedup and row.expert else None


def _relative_error(row: TrialRow) -> float:
    return math.hypot(_log_error(row), log_error(row.expert)) if row.expert else 0.0


_GAIN = average(
    "gain",
    "gain: geometric mean speedup, trials that are not solved or not shown to be faster as 1",
    Unit.FACTOR,
    lambda row: row.gain.value if row.gain else 1.0,
    log=True,
    error=gain_error,
    applies=lambda rows: timed(rows) or not any(row.outcome.solves for row in rows),
)

MEASURES: tuple[Measure, ...] = (
    share("compile_rate", "compiled, of planned trials", lambda row: row.compiled),
    share("correctness_rate", "correct on seen cases, of planned trials", lambda row: row.correct),
    share("performance_rate", "passed performance, of planned trials", lambda row: row.performed, timed=True),
    share(
        "solved_rate",
        "solved: correct on every case, seen and unseen, of planned trials",
        lambda row: row.solved,
        applies=heldout_known,
    ),
    share(
        "overfit_rate",
        "overfit: correct on every seen case and wrong on an unseen one, of planned trials",
        lambda row: row.outcome is Outcome.OVERFIT,
        applies=heldout_known,
    ),
    *(_pass_at("pass", "correct on seen cases", lambda row: row.correct, k) for k in AT_K),
    *(_pass_at("solved", "solved", lambda row: row.solved, k) for k in AT_K),
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
        "silent_failure",
        "held-out cases of those trials that are wrong without an error",
        lambda case: case.failure is FailureClass.SILENT,
        lambda case: True,
    ),
    _case_share(
        "refusal",
        "held-out cases of those trials that the kernel refuses by an error of its own",
        lambda case: case.failure is FailureClass.REFUSED,
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
    average(
        "mean_speedup",
        "mean speedup of correct tasks",
        Unit.FACTOR,
        _speedup,
        error=_speedup_error,
    ),
    _GAIN,
    over_families(_GAIN, "family_gain", "gain, geometric mean over families of tasks"),
    *map(_fast_p, FAST_P),
    average(
        "speedup_retention",
        "speedup retention",
        Unit.FACTOR,
        lambda row: row.retention,
        log=True,
        error=_retention_error,
    ),
    average(
        "regime_retention",
        "speedup retention in the worst regime",
        Unit.FACTOR,
        lambda row: row.regime_retention,
        log=True,
        applies=lambda rows: any(row.regime_retention for row in rows),
    ),
    average(
        "served_speedup",
        "served speedup: of recorded traffic",
        Unit.FACTOR,
        lambda row: row.served_speedup.value if row.served_speedup else None,
        log=True,
        error=lambda row: log_error(row.served_speedup) if row.served_speedup else 0.0,
        applies=lambda rows: any(row.served_speedup for row in rows),
    ),
    average(
        "relative_to_expert",
        "speedup relative to the expert's",
        Unit.FACTOR,
        relative,
        log=True,
        error=_relative_error,
    ),
    average("bounded_reward", "bounded reward", Unit.PLAIN, bounded, error=_bounded_error, applies=timed),
    average("points", "points", Unit.PLAIN, lambda row: row.points, error=_points_error),
    average("reward", "dense reward", Unit.PLAIN, lambda row: row.reward),
    *SPENDING,
    average("roofline_fraction", "fraction of the roofline", Unit.SHARE, lambda row: row.roofline, log=True),
    average("sol_score", "SOL score", Unit.PLAIN, _sol, applies=_sol_known),
)

BY_NAME = {measure.name: measure for measure in MEASURES}

"""Tokens, cost and time that agents use up for what they reach, from the sessions of trials.

Formulas and sources: docs/evaluate/measures.md. Trials without a session, such as those of `noop`, have none of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

from arena.reports.intervals import Method, Quantity, Tally
from arena.reports.measure import Attempts, Measure, Unit, average, heldout_known
from arena.reports.rows import TrialRow
from arena.results.session import Session
from arena.results.verdict import CORRECT


def tokens(row: TrialRow) -> float | None:
    """Tokens of a trial, or None where the agent does not report them."""
    return row.session.tokens.total or None if row.session else None


def cost_usd(row: TrialRow) -> float | None:
    """Cost of a trial, or None where the agent does not report it."""
    return row.session.cost_usd or None if row.session else None


def first_correct_s(session: Session) -> float | None:
    """Seconds at work until the first evaluation whose outputs were right, or None where there was none."""
    return min((one.at_s for one in session.evaluations if one.status in CORRECT), default=None)


def best_so_far_mean(session: Session) -> float | None:
    """Return exp of the time average of log(best speedup so far) over a session; 1 before the first that passed.

    None for a session without a length.
    """
    if session.active_s <= 0:
        return None
    passed = sorted((min(one.at_s, session.active_s), one.speedup) for one in session.evaluations if one.speedup)
    steps, best = [], 0.0
    for at_s, speedup in passed:
        best = max(best, speedup)
        steps.append((at_s, math.log(best)))
    area = sum((end - start) * level for (start, level), (end, _) in pairwise([*steps, (session.active_s, 0.0)]))
    return math.exp(area / session.active_s)


def _known(value: Callable[[TrialRow], float | None]) -> Callable[[Sequence[TrialRow]], bool]:
    """Return a check that every trial has the value: a total of some of them would flatter."""
    return lambda rows: all(value(row) is not None for row in rows)


def _total(attempts: Attempts, value: Callable[[TrialRow], float | None]) -> float:
    return sum(value(row) or 0.0 for row in attempts)


def _per_solved(name: str, title: str, value: Callable[[TrialRow], float | None]) -> Measure:
    known = _known(value)
    return Measure(
        name,
        f"{title} per solved task",
        Unit.PLAIN,
        mean=lambda attempts: Tally(_total(attempts, value), any(row.solved for row in attempts)),
        own_count=True,
        applies=lambda rows: heldout_known(rows) and known(rows),
    )


def _doublings(attempts: Attempts) -> float:
    return sum(max(0.0, math.log2(row.speedup.value)) for row in attempts if row.speedup)


def _median_first_correct(rows: Sequence[TrialRow]) -> Quantity | None:
    """A session that never had a correct kernel counts as longer than any; None where that is the median."""
    sessions = [row.session for row in rows if row.session]
    times = [math.inf if at_s is None else at_s for at_s in map(first_correct_s, sessions)]
    middle = median(times) if times else math.inf
    tasks = len({row.task for row in rows if row.session})
    return Quantity(middle, None, None, tasks, Method.NONE, len(times)) if math.isfinite(middle) else None


SPENDING: tuple[Measure, ...] = (
    _per_solved("tokens_per_solved", "tokens", tokens),
    _per_solved("cost_per_solved", "cost in US dollars", cost_usd),
    Measure(
        "cost_per_doubling",
        "cost in US dollars per doubling of speed",
        Unit.PLAIN,
        mean=lambda attempts: Tally(_total(attempts, cost_usd), _doublings(attempts)),
        timed=True,
        applies=_known(cost_usd),
    ),
    Measure(
        "first_correct_s",
        "seconds to the first correct kernel, median of sessions",
        Unit.PLAIN,
        own_count=True,
        of_rows=_median_first_correct,
    ),
    average(
        "best_so_far",
        "best speedup so far, mean over the session",
        Unit.FACTOR,
        lambda row: best_so_far_mean(row.session) if row.session else None,
        log=True,
    ),
)

"""Measures of one agent on one task type, or on all of them: counts, estimates, outcomes, kinds, the fast_p curve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from arena.reports.intervals import Quantity, Tally, estimate
from arena.reports.measure import Attempts, Measure, by_family, by_task, timed
from arena.reports.measures import BY_NAME, MEASURES, fast, tried
from arena.reports.rows import TrialRow
from arena.reports.spending import cost_usd, first_correct_s, tokens
from arena.results.outcome import HeldoutOutcome, Outcome
from arena.results.verdict import Status
from arena.task.definition import KINDS

ALL = "all"
LATENCY_BOUND = "latency_bound"
"""the group of tasks that no size makes long, whose speeds no other group holds"""
MISSING = "missing"
CURVE = tuple(round(step * 0.05, 2) for step in range(101))
"""Thresholds of the fast_p curve: 0, 0.05, …, 5."""


@dataclass(frozen=True)
class Counts:
    """How many trials. `planned` are `handed_in`, `not_handed_in` and `missing`; `outcomes` counts all of them.

    Of `sessions`, `never_correct` had no correct kernel; in `cost_known` and `tokens_known` trials these are reported.
    `unjudged_cases` are held-out cases without an outcome. A trial in which the harness failed counts as handed in.
    """

    tasks: int
    planned: int
    recorded: int
    harness_errors: int
    compiled: int
    correct: int
    performed: int
    heldout_ran: int
    noisy_cases: int
    unjudged_cases: int
    sessions: int
    never_correct: int
    cost_known: int
    tokens_known: int
    outcomes: Mapping[Outcome, int]
    statuses: Mapping[str, int]

    @property
    def not_handed_in(self) -> int:
        """Trials in which nothing was handed in, or the baseline unchanged."""
        return self.outcomes.get(Outcome.NOT_HANDED_IN, 0)

    @property
    def solved(self) -> int:
        """Trials whose every case is right, seen and unseen."""
        return self.outcomes.get(Outcome.SOLVED, 0)

    @property
    def missing(self) -> int:
        """Planned trials without a record."""
        return self.planned - self.recorded

    @property
    def handed_in(self) -> int:
        """Recorded trials whose agent handed in a kernel."""
        return self.recorded - self.not_handed_in


@dataclass(frozen=True)
class KindDrop:
    """Held-out correctness of one kind of case, over trials that were correct on every seen case."""

    kind: str
    passed: int
    cases: int
    drop: Quantity


@dataclass(frozen=True)
class Group:
    """All measures of one agent on one task type. A measure is None where the trials cannot state it."""

    agent: str
    calibrates: bool
    label: str
    task_type: str
    counts: Counts
    mean: Mapping[str, Quantity | None]
    best: Mapping[str, Quantity | None]
    heldout_cases: Mapping[HeldoutOutcome, int]
    kinds: tuple[KindDrop, ...]
    curve: tuple[float, ...]


def groups(rows: Sequence[TrialRow], names: Container[str] = BY_NAME) -> list[Group]:
    """Per agent, in order of appearance: one group over all tasks, one per task type, one of those bound by latency.

    `names`: the measures that are wanted. Where these are not all, curves are left out too.
    """
    found = []
    for label in dict.fromkeys(row.label for row in rows):
        mine = [row for row in rows if row.label == label]
        found.append(group(label, ALL, mine, names))
        types = dict.fromkeys(row.task_type for row in mine)
        found += [group(label, name, [row for row in mine if row.task_type == name], names) for name in sorted(types)]
        short = [row for row in mine if row.latency_bound]
        found += [group(label, LATENCY_BOUND, short, names)] if short else []
    return found


def group(label: str, task_type: str, rows: Sequence[TrialRow], names: Container[str] = BY_NAME) -> Group:
    """Measure one set of planned trials of one agent; measures of speed leave out tasks that are bound by latency."""
    tasks = by_task(rows)
    long = rows if task_type == LATENCY_BOUND else [row for row in rows if not row.latency_bound]
    of_speed = long, by_task(long)
    most = max(map(len, tasks), default=0)
    planned = [measure for measure in MEASURES if measure.name in names and measure.attempts <= most]
    cases = Counter(case.outcome for row in rows for case in row.cases if case.outcome is not None)
    return Group(
        agent=rows[0].agent if rows else label,
        calibrates=bool(rows) and rows[0].calibrates,
        label=label,
        task_type=task_type,
        counts=_counts(rows, len(tasks)),
        mean={m.name: evaluate(m, *(of_speed if m.timed else (rows, tasks))) for m in planned},
        best={m.name: evaluate(m, *(of_speed if m.timed else (rows, tasks)), best=True) for m in planned if m.best},
        heldout_cases={outcome: cases[outcome] for outcome in HeldoutOutcome},
        kinds=tuple(_kinds(tasks)) if "correctness_drop" in names else (),
        curve=tuple(_curve(long)) if names is BY_NAME else (),
    )


def evaluate(
    measure: Measure, rows: Sequence[TrialRow], tasks: Sequence[Attempts], *, best: bool = False
) -> Quantity | None:
    """Estimate one measure with its interval, over the mean of attempts or the best of them.

    None where no trial has a record: what never ran has no rate and no interval.
    """
    if not any(row.status for row in rows) or not measure.applies(rows):
        return None
    if measure.of_rows is not None:
        return measure.of_rows(rows)
    tally = measure.best if best else measure.mean
    if tally is None:
        return None
    tallies = [tally(attempts) for attempts in (by_family(rows) if measure.families else tasks)]
    return estimate(tallies, proportion=measure.proportion, log=measure.log)


def _counts(rows: Sequence[TrialRow], tasks: int) -> Counts:
    statuses = Counter(str(row.ended_by) if row.ended_by else MISSING for row in rows)
    ended = Counter(row.outcome for row in rows)
    order = [str(status) for status in Status] + [MISSING]
    return Counts(
        tasks=tasks,
        planned=len(rows),
        recorded=sum(row.status is not None for row in rows),
        harness_errors=sum(row.status is Status.HARNESS_ERROR for row in rows),
        compiled=sum(row.compiled for row in rows),
        correct=sum(row.correct for row in rows),
        performed=sum(row.performed for row in rows),
        heldout_ran=sum(row.heldout_ran for row in rows),
        noisy_cases=sum(case.noisy for row in rows for case in row.cases),
        unjudged_cases=sum(row.unjudged for row in rows),
        sessions=sum(row.session is not None for row in rows),
        never_correct=sum(first_correct_s(row.session) is None for row in rows if row.session),
        cost_known=sum(cost_usd(row) is not None for row in rows),
        tokens_known=sum(tokens(row) is not None for row in rows),
        outcomes={one: ended[one] for one in Outcome if ended[one]},
        statuses={name: statuses[name] for name in order if statuses[name]},
    )


def _kinds(tasks: Sequence[Attempts]) -> Iterable[KindDrop]:
    """One drop per kind that occurs; seen cases of these trials all passed, so the drop is the failed share."""
    present = {case.result.kind for attempts in tasks for row in attempts for case in row.cases if case.outcome}
    for kind in [*KINDS, *sorted(present - set(KINDS))]:
        tallies = [_failed(attempts, kind) for attempts in tasks]
        drop = estimate(tallies, proportion=True)
        if drop is not None:
            cases, failed = int(sum(t.weight for t in tallies)), int(sum(t.total for t in tallies))
            yield KindDrop(kind, cases - failed, cases, drop)


def _failed(attempts: Attempts, kind: str) -> Tally:
    judged = [
        case
        for row in filter(tried, attempts)
        for case in row.cases
        if case.outcome is not None and case.result.kind == kind
    ]
    return Tally(sum(not case.correct for case in judged), len(judged))


def _curve(rows: Sequence[TrialRow]) -> list[float]:
    """fast_p at every threshold of `CURVE`; empty where no trial was timed."""
    return [sum(fast(row, threshold) for row in rows) / len(rows) for threshold in CURVE] if timed(rows) else []

"""What two sides have in common: tasks, attempts and cases, paired by their speedups.

Each speedup is relative to the baseline timed beside it, so that a machine that was slower that day does not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from arena.reports.intervals import log_error, with_log_error
from arena.reports.rows import TrialRow, combine, mean_speedup
from arena.results.record import CaseResult, CaseTiming, Estimate, Split

ByTask = Mapping[str, Sequence[TrialRow]]
"""The attempts of one agent, by task."""


@dataclass(frozen=True)
class CasePair:
    """Speedups and latencies of both sides on one seen case, means over attempts; above 1: the second is faster.

    `speedup_ratio` has the interval that follows from both speedups', `latency_ratio` is for information.
    """

    task: str
    case: str
    label: str
    first_ms: float
    second_ms: float
    speedup_ratio: Estimate
    noisy: bool

    @property
    def latency_ratio(self) -> float:
        """First latency over second latency."""
        return self.first_ms / self.second_ms


@dataclass(frozen=True)
class TaskPair:
    """One task: the shares of attempts right on every seen case, and solved, of both sides; ratios as of a case.

    A trial without unseen cases to try counts as solved where it is right.
    """

    task: str
    first_seen: float
    second_seen: float
    first_solved: float
    second_solved: float
    speedup_ratio: Estimate | None
    latency_ratio: float | None


def common_tasks(ones: ByTask, twos: ByTask) -> tuple[list[str], list[str]]:
    """Tasks of both sides that did not change between them, and what to tell the reader about the others."""
    shared = [task for task in ones if task in twos]
    changed = [task for task in shared if len(_hashes(ones[task]) | _hashes(twos[task])) > 1]
    single = len(ones) + len(twos) - 2 * len(shared)
    notes = [f"{single} tasks are in one of the two only and are left out"] if single else []
    if changed:
        notes.append(f"{len(changed)} tasks changed between the two and are left out: {', '.join(changed)}")
    kept = [task for task in shared if task not in changed]
    missing = sum(row.status is None for side in (ones, twos) for task in kept for row in side[task])
    if missing:
        notes.append(f"{missing} planned trials have no record and count as failed; `arena run CONFIG` resumes")
    return kept, notes


def _hashes(rows: Sequence[TrialRow]) -> set[str]:
    return {row.task_hash for row in rows if row.task_hash}


def task_pair(task: str, ones: Sequence[TrialRow], twos: Sequence[TrialRow], cases: Sequence[CasePair]) -> TaskPair:
    """Pair the correctness of both sides on one task, and the geometric mean ratios of its cases."""
    mine = [pair for pair in cases if pair.task == task]
    return TaskPair(
        task,
        _share(row.outcome.right_on_seen for row in ones),
        _share(row.outcome.right_on_seen for row in twos),
        _share(row.outcome.solves for row in ones),
        _share(row.outcome.solves for row in twos),
        combine(pair.speedup_ratio for pair in mine),
        geometric_mean(pair.latency_ratio for pair in mine) if mine else None,
    )


def _share(values: Iterable[bool]) -> float:
    known = list(values)
    return sum(known) / len(known)


def case_pairs(tasks: Sequence[str], ones: ByTask, twos: ByTask) -> list[CasePair]:
    """Pair the seen cases that both sides passed with a valid timing."""
    pairs = []
    for task in tasks:
        first, second = _timings(ones[task]), _timings(twos[task])
        for case in first:
            if case in second:
                one, two = first[case], second[case]
                ratio = _quotient(two.speedup, one.speedup)
                pairs.append(CasePair(task, case, one.label, one.ms, two.ms, ratio, one.noisy or two.noisy))
    return pairs


def _quotient(over: Estimate, under: Estimate) -> Estimate:
    """The quotient of two speedups, whose errors are independent: each has a baseline and rounds of its own."""
    return with_log_error(over.value / under.value, math.hypot(log_error(over), log_error(under)))


@dataclass(frozen=True)
class _Timing:
    label: str
    ms: float
    speedup: Estimate
    noisy: bool


def _timings(rows: Sequence[TrialRow]) -> dict[str, _Timing]:
    """Per seen case, the geometric means over those attempts whose speedup counts."""
    found: dict[str, list[tuple[CaseResult, CaseTiming]]] = {}
    for row in rows:
        for case in row.split(Split.SEEN) if row.speedup else ():
            timing = case.result.timing
            if timing is not None and case.result.speedup is not None:
                found.setdefault(case.result.case, []).append((case.result, timing))
    return {
        case: _Timing(
            timed[0][0].label,
            geometric_mean(timing.candidate_ms.value for _, timing in timed),
            mean_speedup([timing.speedup for _, timing in timed]),
            any(timing.noisy for _, timing in timed),
        )
        for case, timed in found.items()
    }

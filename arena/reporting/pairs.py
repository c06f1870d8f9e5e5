"""What two sides have in common: tasks, attempts and cases, paired."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from arena.model.record import Split
from arena.reporting.rows import TrialRow

ByTask = Mapping[str, Sequence[TrialRow]]
"""The attempts of one agent, by task."""


@dataclass(frozen=True)
class CasePair:
    """Latencies of both sides on one seen case, means over attempts; `ratio` above 1: the second is faster."""

    task: str
    case: str
    label: str
    first_ms: float
    second_ms: float
    speedup_ratio: float
    noisy: bool

    @property
    def ratio(self) -> float:
        """First latency over second latency."""
        return self.first_ms / self.second_ms


@dataclass(frozen=True)
class TaskPair:
    """How often both sides were correct on one task, on seen cases and on held-out cases too."""

    task: str
    first_correct: float
    second_correct: float
    first_heldout: float
    second_heldout: float
    ratio: float | None


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
    """Pair the correctness of both sides on one task, and the geometric mean ratio of its cases."""
    logs = [math.log(pair.ratio) for pair in cases if pair.task == task]
    return TaskPair(
        task,
        _share(row.correct for row in ones),
        _share(row.correct for row in twos),
        _share(row.heldout_correct for row in ones),
        _share(row.heldout_correct for row in twos),
        math.exp(sum(logs) / len(logs)) if logs else None,
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
                ratio = two.speedup / one.speedup
                pairs.append(CasePair(task, case, one.label, one.ms, two.ms, ratio, one.noisy or two.noisy))
    return pairs


@dataclass(frozen=True)
class _Timing:
    label: str
    ms: float
    speedup: float
    noisy: bool


def _timings(rows: Sequence[TrialRow]) -> dict[str, _Timing]:
    """Per seen case, the geometric means over those attempts whose speedup counts."""
    found: dict[str, list[tuple[str, float, float, bool]]] = {}
    for row in rows:
        for case in row.split(Split.SEEN) if row.speedup else ():
            timing, result = case.result.timing, case.result
            if timing is not None and result.speedup is not None:
                entry = (
                    result.label,
                    math.log(timing.candidate_ms.value),
                    math.log(result.speedup.value),
                    timing.noisy,
                )
                found.setdefault(result.case, []).append(entry)
    return {
        case: _Timing(
            entries[0][0],
            math.exp(sum(entry[1] for entry in entries) / len(entries)),
            math.exp(sum(entry[2] for entry in entries) / len(entries)),
            any(entry[3] for entry in entries),
        )
        for case, entries in found.items()
    }

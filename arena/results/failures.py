"""Failures of cases: their class, and as text, where cases with the same failure share a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from arena.results.messages import code_of
from arena.results.record import CaseResult, Evaluation
from arena.results.verdict import CORRECT, Status

_LEAST_SPAN = 3
_REFUSAL = "kernel_refuses"
_LOUD = (
    *(Status.LAUNCH_ERROR, Status.LOAD_ERROR, Status.COMPILE_ERROR),
    *(Status.CRASH, Status.TIMEOUT, Status.OUT_OF_MEMORY),
)
_UNJUDGED = (Status.NOT_RUN, Status.HARNESS_ERROR, Status.NOTHING_SUBMITTED, Status.RULE_VIOLATION)


class FailureClass(StrEnum):
    """The way in which a failure shows to a user of the kernel."""

    REFUSED = "refused"
    """the kernel's own host code raises an error"""
    CRASHED = "crashed"
    """any other error, crash or hang"""
    SILENT = "silently wrong"
    """it ends as if all were well, and something is wrong"""


def failure_class(result: CaseResult) -> FailureClass | None:
    """Return how a case failed; None where it did not, was not judged, or broke a rule."""
    if result.candidate in (*CORRECT, *_UNJUDGED):
        return None
    if code_of(result.detail) == _REFUSAL:
        return FailureClass.REFUSED
    return FailureClass.CRASHED if result.candidate in _LOUD else FailureClass.SILENT


def failures(evaluation: Evaluation) -> Iterator[str]:
    """Yield each failure once: `seen-01 … seen-06: wrong_result: …`; a single case stands with its sizes."""
    told: dict[tuple[Status, str], list[str]] = {}
    labels = {result.case: result.label for result in evaluation.cases}
    for result in evaluation.cases:
        if result.candidate not in (Status.PASSED, Status.NOT_RUN) or result.detail:
            told.setdefault((result.candidate, result.detail.strip()), []).append(result.case)
    for (status, detail), cases in told.items():
        who = spans(cases, tuple(labels)) if len(cases) > 1 else f"{cases[0]} ({labels[cases[0]]})"
        gap = "\n" if "\n" in detail else " "
        yield f"{who}: {status}" + (f":{gap}{detail}" if detail else "")


def spans(cases: Sequence[str], order: Sequence[str]) -> str:
    """Return cases by id: `seen-01, seen-03 … seen-06`, where three or more follow one another in `order`."""
    place = {case: index for index, case in enumerate(order)}
    runs: list[list[str]] = []
    for case in sorted(cases, key=place.__getitem__):
        if runs and place[case] == place[runs[-1][-1]] + 1:
            runs[-1].append(case)
        else:
            runs.append([case])
    return ", ".join(f"{run[0]} … {run[-1]}" if len(run) >= _LEAST_SPAN else ", ".join(run) for run in runs)

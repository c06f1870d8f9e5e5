"""Failures of cases as text: cases with the same failure share a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arena.results.record import Evaluation
from arena.results.verdict import Status

_LEAST_SPAN = 3


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

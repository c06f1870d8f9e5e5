"""Failures of cases, each once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.results.failures import FailureClass, failure_class, failures, spans
from arena.results.messages import message
from arena.results.record import CaseResult, Split
from arena.results.verdict import Status
from tests.reports.builders import case, heldout, trial


def test_the_same_failure_of_several_cases_is_one_line() -> None:
    wrong = [case(f"seen-0{number}", candidate=Status.WRONG_RESULT) for number in range(1, 7)]
    same = [replace(one, detail="y: 3 of 9 elements differ") for one in wrong]
    other = replace(heldout("heldout-01", candidate=Status.CRASH), detail="line 1\nline 2")
    evaluation = trial(cases=[*same, case("seen-07"), other]).evaluation
    assert evaluation is not None
    assert list(failures(evaluation)) == [
        "seen-01 … seen-06: wrong_result: y: 3 of 9 elements differ",
        f"heldout-01 ({other.label}): crash:\nline 1\nline 2",
    ]


def test_two_cases_or_cases_apart_are_listed() -> None:
    order = ["a", "b", "c", "d", "e", "f"]
    assert spans(["f", "a", "b"], order) == "a, b, f"
    assert spans(["a", "c", "d", "e"], order) == "a, c … e"


@pytest.mark.parametrize(
    ("status", "detail", "expected"),
    [
        (Status.PASSED, "", None),
        (Status.NOT_RUN, "", None),
        (Status.RULE_VIOLATION, message("pytorch_computes", operator="aten::mul"), None),
        (Status.LAUNCH_ERROR, message("kernel_refuses", log="ValueError: only K = 128"), FailureClass.REFUSED),
        (Status.LAUNCH_ERROR, message("launch_failed", log="TypeError: no"), FailureClass.CRASHED),
        (Status.TIMEOUT, message("no_answer", allowed_s=1), FailureClass.CRASHED),
        (Status.WRONG_RESULT, "y: all 4 elements wrong", FailureClass.SILENT),
        (Status.OUT_OF_BOUNDS, "", FailureClass.SILENT),
    ],
)
def test_failures_are_silent_or_loud(status: Status, detail: str, expected: FailureClass | None) -> None:
    result = CaseResult("seen-01", Split.SEEN, "", "M=4", Status.PASSED, status, detail=detail)
    assert failure_class(result) is expected

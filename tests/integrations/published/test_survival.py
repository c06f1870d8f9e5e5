"""Rows and counts of published kernels, from records that are made up here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.integrations.published import survival
from arena.integrations.published.sources import Claim, PublishedKernel
from arena.results.record import CaseResult, Split
from arena.results.verdict import Status
from tests.reports import builders as b

KERNEL = PublishedKernel("a", "p", "a/kernel.py", "0", Claim(correct=True), task="t/s/n", cases=("seen-02",))


@pytest.mark.parametrize(
    ("status", "ratio", "expected"),
    [
        (Status.WRONG_RESULT, 10.0, survival.IMPRECISE),
        (Status.WRONG_RESULT, 10.1, "silently wrong"),
        (Status.WRONG_RESULT, None, "silently wrong"),
        (Status.LAUNCH_ERROR, None, "crashed"),
        (Status.PASSED, 0.5, ""),
        (Status.RULE_VIOLATION, None, ""),
    ],
)
def test_how_a_case_fails(status: Status, ratio: float | None, expected: str) -> None:
    case = CaseResult("seen-01", Split.SEEN, "", "M=1", Status.PASSED, status, error_ratio=ratio)
    assert survival._failure(case) == expected


@pytest.mark.parametrize(
    ("outcome", "right", "judged", "met"),
    [("solved", 3, 3, True), ("overfit", 2, 3, True), ("failed", 2, 3, True), ("failed", 3, 3, False)],
)
def test_who_met_other_cases(outcome: str, right: int, judged: int, met: bool) -> None:
    """A kernel that fails a published case is not tried on held-out ones, so the small ones alone say nothing."""
    row = replace(survival._row(KERNEL, None), outcome=outcome, unseen_right=right, unseen_judged=judged, failure="x")
    assert bool(survival.progress_of([row]).met) is met


def test_a_kernel_that_breaks_a_rule_is_not_among_those_tried() -> None:
    row = replace(survival._row(KERNEL, None), outcome="failed", published_judged=2)
    found = survival.progress_of([row, replace(row, failure="crashed"), survival._row(KERNEL, None)])
    assert (len(found.judged), len(found.tried), len(found.right)) == (2, 1, 0)


@pytest.mark.parametrize(("status", "tried"), [(Status.COMPILE_ERROR, 1), (Status.RULE_VIOLATION, 0)])
def test_a_kernel_that_does_not_build_was_tried_and_is_not_right(status: Status, tried: int) -> None:
    found = survival.progress_of([survival._row(KERNEL, b.trial("t/s/n", status, agent="a"))])
    assert (len(found.judged), len(found.tried), len(found.right)) == (1, tried, 0)


@pytest.mark.parametrize(
    ("told", "other", "expected"),
    [
        (Status.PASSED, Status.RULE_VIOLATION, survival.BREAKS_RULE),
        (Status.RULE_VIOLATION, Status.RULE_VIOLATION, ""),
        (Status.PASSED, Status.PASSED, ""),
    ],
)
def test_a_rule_that_is_broken_on_other_cases_alone(told: Status, other: Status, expected: str) -> None:
    """A kernel that falls back to PyTorch for sizes that nobody published is right on those that were."""
    cases = (
        CaseResult("seen-02", Split.SEEN, "", "M=2", Status.PASSED, told),
        CaseResult("seen-01", Split.SEEN, "", "M=1", Status.PASSED, other),
    )
    trial = b.trial("t/s/n", Status.RULE_VIOLATION, agent="a")
    assert trial.evaluation is not None
    row = survival._row(KERNEL, replace(trial, evaluation=replace(trial.evaluation, cases=cases)))
    assert row.failure == expected
    assert bool(survival.progress_of([row]).right) is (expected == survival.BREAKS_RULE)

"""Records to rows: one row per planned trial, labels, outcomes, combined speedups, runs that may not be mixed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.errors import RecordError
from arena.reports.compare import Conclusion, compare_runs
from arena.reports.rows import combine, trial_rows
from arena.results.outcome import HeldoutOutcome
from arena.results.record import Estimate, Split
from arena.results.verdict import Stage, Status, Verdict

from . import builders as b


def test_a_missing_trial_keeps_its_row_and_its_task_type() -> None:
    rows = trial_rows([b.run([b.trial()], tasks=["triton2triton/norm/rms", "hip2hip/modules/gelu"])])
    assert [(row.task_type, row.status) for row in rows] == [("triton2triton", Status.PASSED), ("hip2hip", None)]
    assert (rows[1].points, rows[1].reward) == (0, -7)


def test_the_speedup_of_a_trial_is_the_geometric_mean_of_its_seen_cases() -> None:
    cases = [b.case("s1", 1.0), b.case("s2", 4.0), b.heldout("h1", 0.5), b.heldout("h2", 2.0)]
    (row,) = trial_rows([b.run([b.trial(cases=cases)])])
    assert row.speedup is not None
    assert row.heldout_speedup is not None
    assert row.speedup.value == pytest.approx(2)
    assert row.heldout_speedup.value == pytest.approx(1)
    assert row.retention == pytest.approx(0.5)
    assert row.points == pytest.approx(320)


@pytest.mark.parametrize("status", [Status.IMPLAUSIBLE, Status.TIMING_MISMATCH])
def test_a_doubtful_clock_costs_the_speedup_but_not_correctness(status: Status) -> None:
    (row,) = trial_rows(
        [b.run([b.trial(status=status, cases=[b.case("s1", 9.0), b.case("s2", 9.0, candidate=status)])])]
    )
    assert row.correct
    assert not row.performed
    assert row.speedup is None
    assert (row.points, row.reward) == (120, -2)


@pytest.mark.parametrize(
    ("status", "compiled", "correct"),
    [
        (Status.COMPILE_ERROR, False, False),
        (Status.WRONG_RESULT, True, False),
        (Status.NOTHING_SUBMITTED, False, False),
        (Status.HARNESS_ERROR, False, False),
    ],
)
def test_failed_stages(status: Status, compiled: bool, correct: bool) -> None:
    (row,) = trial_rows([b.run([b.trial(status=status)])])
    assert (row.compiled, row.correct, row.performed, row.speedup) == (compiled, correct, False, None)


def test_one_failed_compile_target_is_a_failed_compile() -> None:
    whole = b.trial(status=Status.COMPILE_ERROR)
    assert whole.evaluation is not None
    verdicts = (Verdict(Stage.COMPILE, Status.PASSED), Verdict(Stage.COMPILE, Status.COMPILE_ERROR))
    (row,) = trial_rows([b.run([replace(whole, evaluation=replace(whole.evaluation, verdicts=verdicts))])])
    assert not row.compiled


def outcomes(*cases: tuple[Status, Status]) -> list[HeldoutOutcome | None]:
    results = [b.heldout(f"h{at}", None, baseline=one, candidate=two) for at, (one, two) in enumerate(cases)]
    (row,) = trial_rows([b.run([b.trial(cases=[b.case(), *results])])])
    return [case.outcome for case in row.split(Split.HELDOUT)]


def test_four_outcomes() -> None:
    good, bad = Status.PASSED, Status.WRONG_RESULT
    expected = [
        HeldoutOutcome.BOTH_PASS,
        HeldoutOutcome.REGRESSION,
        HeldoutOutcome.IMPROVEMENT,
        HeldoutOutcome.BOTH_FAIL,
    ]
    assert outcomes((good, good), (good, bad), (bad, good), (bad, bad)) == expected


def test_a_held_out_case_that_was_not_reached_counts_as_failed_once_another_was_run() -> None:
    assert outcomes((Status.PASSED, Status.CRASH), (Status.PASSED, Status.NOT_RUN)) == [HeldoutOutcome.REGRESSION] * 2
    assert (
        outcomes((Status.PASSED, Status.TIMEOUT), (Status.NOT_RUN, Status.NOT_RUN)) == [HeldoutOutcome.REGRESSION] * 2
    )
    assert outcomes((Status.PASSED, Status.NOT_RUN), (Status.NOT_RUN, Status.NOT_RUN)) == [None, None]


def test_a_case_that_the_harness_or_the_baseline_did_not_judge_has_no_outcome() -> None:
    found = outcomes(
        (Status.PASSED, Status.PASSED), (Status.PASSED, Status.HARNESS_ERROR), (Status.NOT_RUN, Status.PASSED)
    )
    assert found == [HeldoutOutcome.BOTH_PASS, None, None]


def test_an_agent_in_two_runs_is_labelled_with_its_run() -> None:
    two = [b.simple([2.0], name="r1"), b.simple([3.0], name="r2"), b.simple([1.0], agent="other", name="r3")]
    assert [row.label for row in trial_rows(two)] == ["alpha (r1)", "alpha (r2)", "other"]


def test_runs_of_two_devices_or_given_twice_are_not_mixed() -> None:
    with pytest.raises(RecordError, match="one report per device"):
        trial_rows([b.simple([2.0]), b.simple([2.0], name="r2", env=b.environment(b.CPU))])
    with pytest.raises(RecordError, match="given twice"):
        trial_rows([b.simple([2.0]), b.simple([2.0])])


def test_runs_of_two_efforts_are_not_mixed() -> None:
    full, second = b.simple([2.0]), b.simple([2.0], name="r2")
    screened = replace(second, info=replace(second.info, evaluation={"effort": "screen"}))
    with pytest.raises(RecordError, match="effort of run 'r1' is full, that of 'r2' screen"):
        trial_rows([full, screened])
    found = compare_runs(full, screened)
    assert found.speed.finding is Conclusion.NOT_COMPARED and "effort" in found.speed.conclusion


def test_combined_interval_by_hand() -> None:
    """Log errors of 3 and 4 units: a variance of 25, and of 24 times the correlation, over two squared."""
    unit = 1.01
    found = combine([Estimate(1.0, unit**-3, unit**3), Estimate(4.0, 4 * unit**-4, 4 * unit**4)])
    half = (25 + 24 * 0.07) ** 0.5 / 2
    assert found is not None
    assert found.value == pytest.approx(2)
    assert found.high == pytest.approx(2 * unit**half)
    assert found.low == pytest.approx(2 * unit**-half)


@pytest.mark.parametrize("cases", [5, 15])
def test_combined_interval_covers_errors_that_are_correlated(cases: int) -> None:
    """Simulated trials: an error of the pair of workers in every case, and one of its own, as they were measured."""
    draws = np.random.default_rng(cases)
    held = 0
    for _ in range(600):
        errors = 0.07**0.5 * draws.normal() + 0.93**0.5 * draws.normal(size=cases)
        found = combine([Estimate(math.exp(e), math.exp(e - 1.96), math.exp(e + 1.96)) for e in errors])
        assert found is not None
        held += found.low <= 1 <= found.high
    assert 0.93 <= held / 600 <= 0.97


def test_combining_nothing_or_an_interval_that_reaches_zero() -> None:
    assert combine([]) is None
    found = combine([Estimate(1.0, 0.0, 2.0)])
    assert found is not None
    assert (found.low, found.high) == (0.0, 2.0)


@given(st.lists(st.tuples(st.floats(0.01, 100), st.floats(0, 0.9)), min_size=1, max_size=12))
def test_combined_interval_holds_the_value(parts: list[tuple[float, float]]) -> None:
    found = combine([Estimate(value, value * (1 - spread), value * (1 + spread)) for value, spread in parts])
    assert found is not None
    assert found.low <= found.value <= found.high

"""Intervals hold their estimate, never collapse on proportions, and match hand-computed values."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arena.reports.intervals import Method, Quantity, Tally, estimate, log_error, wilson
from arena.results.record import Estimate

SHARES = st.floats(0, 1, allow_nan=False)


def test_no_tasks_or_no_weight_give_no_estimate() -> None:
    assert estimate([]) is None
    assert estimate([Tally(0, 0), Tally(0, 0)]) is None


def test_wilson_matches_the_published_formula() -> None:
    low, high = wilson(0.5, 10)
    assert low == pytest.approx(0.2366, abs=1e-4)
    assert high == pytest.approx(0.7634, abs=1e-4)
    assert wilson(1.0, 5) == pytest.approx((0.5655, 1.0), abs=1e-4)


def test_a_proportion_of_one_is_not_certain() -> None:
    found = estimate([Tally(1, 1)] * 50, proportion=True)
    assert found is not None
    assert found.method is Method.WILSON
    assert found.low is not None
    assert 0.9 < found.low < 1
    assert found.high == 1


def test_few_tasks_use_wilson_with_the_number_of_tasks() -> None:
    found = estimate([Tally(3, 3), Tally(0, 3)], proportion=True)
    assert found is not None
    assert (found.low, found.high) == wilson(0.5, 2)


def test_many_tasks_use_the_bootstrap() -> None:
    found = estimate([Tally(place % 2, 1) for place in range(100)], proportion=True)
    assert found is not None
    assert found.method is Method.BOOTSTRAP
    assert found.low == pytest.approx(0.4, abs=0.02)
    assert found.high == pytest.approx(0.6, abs=0.02)


def test_one_task_has_no_interval_of_a_mean() -> None:
    assert estimate([Tally(1.7, 1)]) == Quantity(1.7, None, None, 1, Method.NONE, 1)


def test_one_timed_task_has_the_interval_of_its_timings() -> None:
    """exp(±1.96 × 0.1) = 1.2165: the interval of the trial, on the log scale and as a mean of factors."""
    expected = pytest.approx((2.0 / 1.2165, 2.0 * 1.2165), rel=1e-4)
    for found in (estimate([Tally(math.log(2.0), 1, 0.1)], log=True), estimate([Tally(2.0, 1, 2.0 * 0.1)])):
        assert found is not None
        assert (found.low, found.high) == expected
        assert found.method is Method.TIMING
    assert log_error(Estimate(2.0, 2.0 / 1.2165, 2.0 * 1.2165)) == pytest.approx(0.1, rel=1e-3)
    assert log_error(Estimate(2.0, 0.0, 2.0 * 1.2165)) == pytest.approx(0.1, rel=1e-3), (
        "from above where there is no log"
    )


def test_equal_tasks_are_as_uncertain_as_their_timings() -> None:
    """Four equal tasks with errors of 0.1: any draw has four of them, so the mean's error is 0.1 / √4 = 0.05."""
    found = estimate([Tally(0.0, 1, 0.1)] * 4, log=True)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.method is Method.BOOTSTRAP_AND_TIMING
    assert math.log(found.high) == pytest.approx(1.96 * 0.05, rel=0.05)
    assert math.log(found.low) == pytest.approx(-math.log(found.high))


def test_errors_of_tasks_and_of_timings_add_up_in_quadrature() -> None:
    """Half of 400 tasks at +0.3 and half at -0.3, with errors of 0.4: the mean's error is √(0.3² + 0.4²) / √400."""
    found = estimate([Tally(0.3 if place % 2 else -0.3, 1, 0.4) for place in range(400)], log=True)
    assert found is not None
    assert found.high is not None
    assert math.log(found.high) == pytest.approx(1.96 * 0.5 / 20, rel=0.05)


@settings(max_examples=30, deadline=None)
@example([(1.0, 1.0), (0.0, 0.0), (0.0, 0.0)])
@given(st.lists(st.tuples(st.floats(-2, 2), st.just(0.0) | st.floats(0.001, 1)), min_size=1, max_size=20))
def test_no_interval_is_narrower_than_the_timings_alone_give(tasks: list[tuple[float, float]]) -> None:
    found = estimate([Tally(log, 1, error) for log, error in tasks], log=True)
    assert found is not None
    alone = 1.959 * math.hypot(*(error for _, error in tasks)) / len(tasks)
    if found.low is None or found.high is None:
        assert alone == 0
    else:
        assert math.log(found.low) - 1e-9 <= math.log(found.value) - alone
        assert math.log(found.high) + 1e-9 >= math.log(found.value) + alone


def test_constant_values_give_an_interval_without_width_and_without_a_warning() -> None:
    found = estimate([Tally(2.0, 1)] * 5)
    assert found is not None
    assert (found.value, found.low, found.high) == (2, 2, 2)


def test_a_quantity_that_does_not_hold_its_estimate_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="does not hold"):
        Quantity(3, 1, 2, 5, Method.BOOTSTRAP, 5)
    with pytest.raises(ValueError, match="two bounds"):
        Quantity(3, 1, None, 5, Method.BOOTSTRAP, 5)


def test_the_same_data_give_the_same_interval() -> None:
    tallies = [Tally(math.sin(place), 1) for place in range(20)]
    assert estimate(tallies) == estimate(list(tallies))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=30), st.booleans())
def test_a_mean_lies_in_its_interval_and_both_in_the_data(values: list[float], log: bool) -> None:
    scale = math.log if log else float
    found = estimate([Tally(scale(value), 1) for value in values], log=log)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert min(values) - 1e-9 <= found.low <= found.value <= found.high <= max(values) * (1 + 1e-9)

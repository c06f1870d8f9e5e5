"""Paired tests by hand, and that interval and p value never disagree."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.reports.intervals import Tally
from arena.reports.paired_tests import paired_t, sign_test

LOGS = st.lists(
    st.tuples(st.integers(-2000, 2000), st.integers(0, 500)).map(lambda one: (one[0] / 1000, one[1] / 1000)),
    min_size=2,
    max_size=12,
)
"""in thousandths, since exp of a smaller logarithm than a float resolves is 1, whatever p is"""


def test_the_t_test_by_hand() -> None:
    """Logarithms 0.1, 0.2, 0.3: mean 0.2, standard error 0.1/√3, t = 3.464 with two degrees of freedom."""
    found, p_value = paired_t([Tally(log, 1) for log in (0.1, 0.2, 0.3)])
    assert found.low is not None and found.high is not None and p_value == pytest.approx(0.0742, abs=1e-4)
    half = 4.3027 * 0.1 / math.sqrt(3)
    assert (found.value, found.low, found.high) == pytest.approx(
        [math.exp(0.2 + off) for off in (0, -half, half)], rel=1e-4
    )


def test_timings_alone_may_be_what_makes_the_error() -> None:
    found, p_value = paired_t([Tally(0.2, 1, 0.5), Tally(0.2, 1, 0.5)])
    assert found.high == pytest.approx(math.exp(0.2 + 12.7062 * 0.5 / math.sqrt(2)), rel=1e-4)
    assert p_value is not None and p_value > 0.05


def test_one_pair_has_neither_interval_nor_p_value() -> None:
    found, p_value = paired_t([Tally(math.log(3.0), 1, 0.01)])
    assert found.value == pytest.approx(3.0) and found.low is None and p_value is None


@settings(max_examples=50, deadline=None)
@given(LOGS)
def test_the_interval_holds_1_exactly_where_p_is_not_small(pairs: list[tuple[float, float]]) -> None:
    found, p_value = paired_t([Tally(log, 1, error) for log, error in pairs])
    assert found.low is not None and found.high is not None and p_value is not None
    if abs(p_value - 0.05) > 1e-6:
        assert (found.low <= 1 <= found.high) is (p_value > 0.05)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_the_interval_holds_0_exactly_where_the_sign_test_shows_nothing(first: int, second: int, same: int) -> None:
    found, p_value = sign_test(first, second, first + second + same)
    if found is None:
        assert (first, second, same, p_value) == (0, 0, 0, 1.0)
        return
    assert found.low is not None and found.high is not None
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert (found.low <= 0 <= found.high) is (p_value >= 0.05)


def test_seven_of_seven_is_a_difference_and_four_equal_tasks_claim_no_certainty() -> None:
    found, p_value = sign_test(0, 7, 10)
    assert found is not None and found.value == 0.7 and p_value == pytest.approx(2 / 2**7)
    equal, p_value = sign_test(0, 0, 4)
    assert equal is not None and equal.low is not None and equal.low < -0.3 and p_value == 1.0

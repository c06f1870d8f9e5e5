"""What is made of a kernel's own times: long enough, with something left to gain, and not hopeless."""

from __future__ import annotations

import pytest

from arena.judge.self_timing import Timed, headroom, long_enough, pace, same_speed
from arena.model.check import Outcome, Speed
from arena.model.record import Estimate, Split
from arena.model.task import Case


def timed(split: Split, *latencies_ms: float) -> list[Timed]:
    return [Timed(Case("c", split, "", {}), latency_ms, Estimate(1.0, 1.0, 1.0)) for latency_ms in latencies_ms]


def speed(latency_ms: float, roofline_ms: float | None = 1.0, floor_ms: float = 0.001) -> Speed:
    return Speed("starting", "M=1", latency_ms, roofline_ms, floor_ms)


@pytest.mark.parametrize(
    ("seen", "heldout", "declared", "outcome"),
    [
        ((0.02, 0.5), (0.3, 0.02), "", Outcome.PASSED),
        ((0.02, 0.5), (0.3, 0.019), "", Outcome.FAILED),
        ((0.01,), (0.01,), "a handful of requests", Outcome.DECLARED),
    ],
)
def test_two_cases_of_each_split_are_long_enough_or_it_is_said_why_not(
    seen: tuple[float, ...], heldout: tuple[float, ...], declared: str, outcome: Outcome
) -> None:
    assert long_enough(timed(Split.SEEN, *seen) + timed(Split.HELDOUT, *heldout), declared).outcome is outcome


@pytest.mark.parametrize(
    ("latency_ms", "declared", "outcome"),
    [(1.2, "", Outcome.PASSED), (1.05, "", Outcome.FAILED), (1.05, "a copy is a copy", Outcome.DECLARED)],
)
def test_a_kernel_at_the_roofline_says_what_is_left(latency_ms: float, declared: str, outcome: Outcome) -> None:
    assert headroom(speed(latency_ms), declared).outcome is outcome


def test_without_known_peaks_headroom_is_not_checked() -> None:
    assert headroom(speed(1.0, None), "").outcome is Outcome.NOT_CHECKED


def test_pace_is_held_against_the_larger_of_roofline_and_floor() -> None:
    assert pace(speed(199.0)).outcome is Outcome.PASSED
    assert pace(speed(201.0)).outcome is Outcome.FAILED
    assert pace(speed(0.3, roofline_ms=1e-6, floor_ms=0.002)).outcome is Outcome.PASSED
    assert pace(speed(0.5, roofline_ms=1e-6, floor_ms=0.002)).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("value", "outcome"), [(1.019, Outcome.PASSED), (0.981, Outcome.PASSED), (0.979, Outcome.FAILED)]
)
def test_a_kernel_is_as_fast_as_itself(value: float, outcome: Outcome) -> None:
    """The worst case counts, and is named with its interval: noise is told from bias by it."""
    cases = [
        Timed(Case(name, Split.SEEN, "", {}), 1.0, Estimate(at, 0.97, 1.02)) for name, at in (("a", 1.0), ("b", value))
    ]
    item = same_speed(cases)
    assert item.outcome is outcome
    assert f"{value:.4f} [0.9700, 1.0200] in b" in item.detail


def test_without_a_long_case_nothing_is_said_of_a_a() -> None:
    assert same_speed([]).outcome is Outcome.NOT_CHECKED

"""What is made of a kernel's own times: long enough, with something left to gain, and not hopeless."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from arena.checks.tasks.self_timing import SelfTiming, Timed, headroom, long_enough, pace, same_speed
from arena.results.check import CheckOutcome, Speed
from arena.results.record import Estimate, Split
from arena.task.definition import Case


def timed(split: Split, *latencies_ms: float) -> list[Timed]:
    return [Timed(Case("c", split, "", {}), latency_ms, (Estimate(1.0, 1.0, 1.0),)) for latency_ms in latencies_ms]


def speed(latency_ms: float, roofline_ms: float | None = 1.0, floor_ms: float = 0.001) -> Speed:
    return Speed("starting", "M=1", latency_ms, roofline_ms, floor_ms)


@pytest.mark.parametrize(
    ("seen", "heldout", "declared", "outcome"),
    [
        ((0.02, 0.5), (0.3, 0.02), "", CheckOutcome.PASSED),
        ((0.02, 0.5), (0.3, 0.019), "", CheckOutcome.FAILED),
        ((0.01,), (0.01,), "a handful of requests", CheckOutcome.DECLARED),
    ],
)
def test_timed_cases_are_long_enough_or_it_is_said_why_not(
    seen: tuple[float, ...], heldout: tuple[float, ...], declared: str, outcome: CheckOutcome
) -> None:
    item = long_enough(timed(Split.SEEN, *seen) + timed(Split.HELDOUT, *heldout), declared)
    assert item.outcome is outcome
    if outcome is CheckOutcome.FAILED:
        assert "3 of 4 timed cases take 20 µs or more (c 19 µs do not)" in item.detail


@pytest.mark.parametrize(
    ("latency_ms", "declared", "outcome"),
    [
        (1.2, "", CheckOutcome.PASSED),
        (1.05, "", CheckOutcome.FAILED),
        (1.05, "a copy is a copy", CheckOutcome.DECLARED),
    ],
)
def test_a_kernel_at_the_roofline_says_what_is_left(latency_ms: float, declared: str, outcome: CheckOutcome) -> None:
    assert headroom(speed(latency_ms), declared).outcome is outcome


def test_without_known_peaks_headroom_is_not_checked() -> None:
    assert headroom(speed(1.0, None), "").outcome is CheckOutcome.NOT_CHECKED


def test_pace_is_held_against_the_larger_of_roofline_and_floor() -> None:
    assert pace(speed(199.0)).outcome is CheckOutcome.PASSED
    assert pace(speed(201.0)).outcome is CheckOutcome.FAILED
    assert pace(speed(0.3, roofline_ms=1e-6, floor_ms=0.002)).outcome is CheckOutcome.PASSED
    assert pace(speed(0.5, roofline_ms=1e-6, floor_ms=0.002)).outcome is CheckOutcome.FAILED


def itself(name: str, *values: float) -> Timed:
    return Timed(Case(name, Split.SEEN, "", {}), 1.0, tuple(Estimate(value, 0.97, 1.04) for value in values))


@pytest.mark.parametrize(
    ("value", "outcome"), [(1.019, CheckOutcome.PASSED), (0.981, CheckOutcome.PASSED), (0.979, CheckOutcome.FAILED)]
)
def test_a_kernel_is_as_fast_as_itself(value: float, outcome: CheckOutcome) -> None:
    """The worst case counts, and is named with its interval: noise is told from bias by it."""
    item = same_speed([itself("a", 1.0), itself("b", value)])
    assert item.outcome is outcome
    assert f"{value:.4f} [0.9700, 1.0400] in b" in item.detail


def test_two_pairs_of_hosts_count_together_and_both_are_named() -> None:
    assert same_speed([itself("a", 1.03, 1.02)]).outcome is CheckOutcome.FAILED
    item = same_speed([itself("a", 1.03, 1.0), itself("b", 1.018)])
    assert item.outcome is CheckOutcome.PASSED
    assert "1.80%" in item.detail
    assert "1.0300 [0.9700, 1.0400] and 1.0000 [0.9700, 1.0400] in a" in item.detail


@pytest.mark.parametrize(
    ("speedups", "outcome"),
    [((1.01,), CheckOutcome.PASSED), ((1.03, 1.001), CheckOutcome.PASSED), ((1.03, 1.03), CheckOutcome.FAILED)],
)
def test_what_is_outside_the_band_is_timed_in_other_hosts(
    monkeypatch: pytest.MonkeyPatch, speedups: tuple[float, ...], outcome: CheckOutcome
) -> None:
    """Luck of one pair of workers goes, a bias stays; what is inside is not timed again."""
    measured, workers = iter(speedups), list[object]()
    program: Any = None

    @contextmanager
    def one_side(*_: object) -> Iterator[object]:
        workers.append(object())
        yield workers[-1]

    monkeypatch.setattr(SelfTiming, "_side", one_side)
    monkeypatch.setattr(SelfTiming, "_largest", lambda _, cases: cases)
    monkeypatch.setattr(SelfTiming, "_time", lambda self, a, b, case: itself(case.id, next(measured)))
    monkeypatch.setattr(SelfTiming, "_speed", lambda *_: speed(1.2))
    monkeypatch.setattr("arena.checks.tasks.self_timing.declared_work", lambda _: 1.0)
    monkeypatch.setattr("arena.checks.tasks.self_timing.arguments", lambda *_: None)
    task = SimpleNamespace(latency_bound="", exceptions={})
    timing = SelfTiming(task, program, program, program, 1.0)  # type: ignore[arg-type]
    items = {item.name: item for item in timing.items(program, [Case("a", Split.SEEN, "", {})])}
    assert items["A/A"].outcome is outcome
    assert len(workers) == 2 * len(speedups)
    assert next(measured, None) is None


def test_only_timed_cases_are_measured_and_the_smaller_ones_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A/A of the two largest of a split, a latency of the other timed cases, nothing of the rest."""
    paired, alone = list[str](), list[str]()
    sizes = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    cases = [Case(name, Split.SEEN, "", {}, timed=name != "d") for name in sizes]

    def pairs(_: object, program: object, some: Any) -> list[Timed]:
        paired.extend(case.id for case in some)
        return [itself(case.id, 1.0) for case in some]

    def latencies(_: object, program: object, some: Any) -> list[Timed]:
        alone.extend(case.id for case in some)
        return [itself(case.id) for case in some]

    monkeypatch.setattr(SelfTiming, "_timed", pairs)
    monkeypatch.setattr(SelfTiming, "_alone", latencies)
    monkeypatch.setattr(SelfTiming, "_speed", lambda *_: speed(1.2))
    monkeypatch.setattr("arena.checks.tasks.self_timing.declared_work", lambda name: sizes[name])
    monkeypatch.setattr("arena.checks.tasks.self_timing.arguments", lambda _, case: case.id)
    task, program = SimpleNamespace(latency_bound="", exceptions={}), SimpleNamespace()
    timing = SelfTiming(task, program, program, program, 1.0)  # type: ignore[arg-type]
    items = {item.name: item for item in timing.items(program, cases)}  # type: ignore[arg-type]
    assert (paired, alone) == (["b", "c"], ["a"])
    assert "3 of 3 timed cases" in items["long enough"].detail
    alone.clear()
    timing.note(program, cases)  # type: ignore[arg-type]
    assert alone == ["c"], "an expert is timed on the largest case that is timed at all"


def test_without_a_long_case_nothing_is_said_of_a_a() -> None:
    assert same_speed([]).outcome is CheckOutcome.NOT_CHECKED

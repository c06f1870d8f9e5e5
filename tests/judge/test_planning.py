"""How many calls the passes of a comparison get, on a GPU whose passes are numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from arena.judge.performance.planning import Planner
from arena.judge.performance.timed_program import PassPlan
from arena.judge.performance.timer import _GPU, Placement, Timer
from arena.judge.performance.waits import LONG, PROBE, SHORT, SINGLE
from arena.judge.process.client import JudgeClient
from arena.results.messages import message
from arena.results.record import Estimate
from arena.results.verdict import Stage, Status
from arena.task.corpus.task_folder import TASKS
from arena.task.definition import Arguments
from arena.task.options import Options
from tests.candidates import HERE, assembled
from tests.judge.test_timer import Allocating
from tests.platforms.fake_device import GIB

BASELINE_S = 1e-4
TIMING = replace(_GPU, pass_s=5e-3)
"""50 calls of the baseline in a pass"""
NOTHING: Any = None
PLACE = Placement(NOTHING, NOTHING)
RMS_NORM = TASKS / "triton2triton" / "normalization" / "rms_norm"
MANY_LAUNCHES = """

once = rms_norm


def rms_norm(x, weight, eps, y):
    for _ in range(300):
        once(x, weight, eps, y)
"""


class Planned:
    """A planner that notes what it binds, and a candidate whose calls take as long as is said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, case: Arguments, candidate_s: float) -> None:
        device = Allocating(150 * GIB)
        self._case = case
        self.planner = Planner(Timer(device, device.facts()), NOTHING, TIMING)
        self.bound: list[PassPlan] = []
        monkeypatch.setattr(Planner, "bind", lambda *given: self.bound.append(given[4]))
        monkeypatch.setattr(Timer, "run", lambda _, __, name: (2e-4 + candidate_s * self._calls_of(name), 0.0))

    def _calls_of(self, name: str) -> int:
        return {SHORT: self.bound[-1].short, LONG: self.bound[-1].long}[name]

    def calls(self, candidate: Any) -> list[int]:
        """Of the long passes that were bound, one after the other."""
        self.bound.clear()
        assert self.planner.plan(NOTHING, candidate, self._case, BASELINE_S, PLACE) == self.bound[-1]
        return [one.long for one in self.bound]

    def feigned(self, candidate: Any, measured_ms: float) -> str:
        """What is said of this latency in the passes that were bound last, which is learnt from then."""
        latency = Estimate(measured_ms, measured_ms, measured_ms)
        said = self.planner.feigned(self.bound[-1], candidate, self._case, BASELINE_S, latency)
        self.planner.learn(candidate, latency)
        return said


def side(call_s: float | None) -> Any:
    return SimpleNamespace(call_s=call_s)


def test_a_probe_lies_where_the_passes_will(case: Arguments) -> None:
    """In a buffer made for it, zeros written to scattered rows took a hundred times as long (on an H200)."""
    bound: list[object] = []
    times = {PROBE: 16e-4, SINGLE: 1e-4}
    arenas = (object(), object())
    timer: Any = SimpleNamespace(
        platform=SimpleNamespace(graphs=True), arenas=arenas, run=lambda _, name: (times[name], 0.0)
    )
    probed: Any = SimpleNamespace(bind=lambda *given: bound.append(given[-1]), unbind=lambda: None)
    assert Planner(timer, NOTHING, _GPU).probe(probed, case) == pytest.approx(1e-4)
    assert bound == [arenas[0]]


@pytest.mark.parametrize(
    ("candidate_s", "calls"),
    [(1e-4, [50]), (9e-5, [50]), (1e-3, [50]), (5e-5, [50, 100])],
    ids=["as-fast", "little-faster", "slower", "twice-as-fast"],
)
def test_a_much_faster_candidate_gets_longer_passes(
    case: Arguments, monkeypatch: pytest.MonkeyPatch, candidate_s: float, calls: list[int]
) -> None:
    """All others are bound once: passes last as long as the baseline's latency asks for."""
    assert Planned(monkeypatch, case, candidate_s).calls(side(None)) == calls


@pytest.mark.parametrize(
    ("candidate_s", "calls"), [(1.9e-3, 50), (3.9e-3, 25), (9.9e-3, 10), (0.03, 8), (0.099, 5), (1.0, 3)]
)
def test_a_candidate_that_takes_far_longer_gets_short_passes(
    case: Arguments, monkeypatch: pytest.MonkeyPatch, candidate_s: float, calls: int
) -> None:
    """About 0.1 s of them, or eight in 0.5 s, or three: by how much it is slower, nobody needs to know exactly."""
    assert Planned(monkeypatch, case, candidate_s).calls(side(candidate_s)) == [calls]


@pytest.mark.parametrize(
    ("seemed_s", "in_passes_s", "calls"),
    [(None, 9.9e-3, 50), (1e-4, 9.9e-3, 50), (9.9e-3, 1e-4, 50), (9.9e-3, 9.9e-3, 10)],
)
def test_passes_are_short_only_where_all_figures_say_so(
    case: Arguments, monkeypatch: pytest.MonkeyPatch, seemed_s: float | None, in_passes_s: float, calls: int
) -> None:
    """A candidate that is slow either while it is checked or while its passes are planned has those of any other."""
    assert Planned(monkeypatch, case, in_passes_s).calls(side(seemed_s))[-1] == calls


@pytest.mark.parametrize(("measured_ms", "again"), [(2.9, 34), (0.1, 50), (0.05, 100)])
def test_a_candidate_that_only_seemed_slow_is_measured_as_any_other(
    case: Arguments, monkeypatch: pytest.MonkeyPatch, measured_ms: float, again: int
) -> None:
    candidate, planned = side(9.9e-3), Planned(monkeypatch, case, 9.9e-3)
    assert planned.calls(candidate) == [10]
    said = message("planning_differs", before_ms=9.9, timed_ms=measured_ms)
    assert "a call took 9.9 ms when" in said and f"{measured_ms:g} ms when timed" in said
    assert planned.feigned(candidate, measured_ms) == said
    assert planned.calls(candidate) == [again]


@pytest.mark.parametrize("measured_ms", [9.9, 8.0, 12.0])
def test_a_candidate_that_is_slow_was_not_feigning(
    case: Arguments, monkeypatch: pytest.MonkeyPatch, measured_ms: float
) -> None:
    candidate, planned = side(9.9e-3), Planned(monkeypatch, case, 9.9e-3)
    planned.calls(candidate)
    assert not planned.feigned(candidate, measured_ms)


def test_nothing_is_feigned_where_passes_are_as_long_as_the_baselines(
    case: Arguments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A candidate may turn out faster than its first passes said, within passes that are long enough for both."""
    candidate, planned = side(None), Planned(monkeypatch, case, 1e-4)
    assert planned.calls(candidate) == [50]
    assert not planned.feigned(candidate, 0.01)


@pytest.mark.parametrize(("measured_ms", "said"), [(0.1, True), (0.19, True), (0.4, False), (2.9, False)])
def test_within_reach_of_credit_no_call_is_missing(
    case: Arguments, monkeypatch: pytest.MonkeyPatch, measured_ms: float, said: bool
) -> None:
    """It seemed to take 2.9 ms, and got 34 calls of 50: few enough that what a pass may hide is half as much again."""
    candidate, planned = side(2.9e-3), Planned(monkeypatch, case, 2.9e-3)
    assert planned.calls(candidate) == [34]
    assert bool(planned.feigned(candidate, measured_ms)) is said


def test_a_latency_that_may_be_nothing_is_not_planned_with(case: Arguments, monkeypatch: pytest.MonkeyPatch) -> None:
    candidate, planned = side(9.9e-3), Planned(monkeypatch, case, 9.9e-3)
    planned.calls(candidate)
    planned.planner.learn(candidate, Estimate(-1.0, -2.0, 3.0))
    assert planned.calls(candidate) == [10]


def test_a_baseline_is_not_run_for_ages_beside_what_seems_to_take_no_time(case: Arguments) -> None:
    device = Allocating(150 * GIB)
    plan = Timer(device, device.facts()).plan(case, 0.02, _GPU, 1e-6)
    assert plan.long == 50


@pytest.mark.gpu
def test_a_slow_candidate_does_not_hold_a_gpu(gpu_judge: JudgeClient, tmp_path: Path) -> None:
    """Its two timed cases took 32 s of an H200 when passes were as long as the baseline's, and take 3."""
    candidate = tmp_path / "kernel.py"
    candidate.write_text((RMS_NORM / "kernel.py").read_text(encoding="utf-8") + MANY_LAUNCHES, encoding="utf-8")
    found = gpu_judge.evaluate(RMS_NORM, candidate, Options(heldout=False))
    assert found.status is Status.PASSED, found.verdicts[-1].detail
    timings = [case.timing for case in found.cases if case.timing is not None]
    assert timings and all(one.speedup.high < 0.01 and one.calls_long < 20 for one in timings)
    assert found.seconds[Stage.PERFORMANCE] < 16


@pytest.mark.gpu
def test_a_candidate_that_feigns_to_be_slow_is_measured_again(gpu_judge: JudgeClient, tmp_path: Path) -> None:
    candidate = assembled(HERE / "cheats" / "rms_norm" / "slow_until_timed.py", tmp_path)
    found = gpu_judge.evaluate(RMS_NORM, candidate, Options(heldout=False))
    assert found.status is Status.PASSED, found.verdicts[-1].detail
    timings = [case.timing for case in found.cases if case.timing is not None]
    assert timings and all("while passes were planned" in one.doubted and one.calls_long > 20 for one in timings)

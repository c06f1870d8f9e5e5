"""What the judge does between the passes of a round, with workers that do as they are told and sides that note it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from arena.judge.correctness.buffers import _EDGE_BYTES
from arena.judge.correctness.verify import GOOD, OutputCheck
from arena.judge.performance import stage as performance
from arena.judge.performance.planning import Planner
from arena.judge.performance.stage import PerformanceCheck
from arena.judge.performance.timed_program import PassPlan, TimedProgram
from arena.judge.performance.timer import _GPU, Placement, Timer
from arena.judge.performance.waits import LONG, SHORT, SINGLE
from arena.platforms.cpu.platform import CpuPlatform
from arena.processes.protocol import Done, Pass, Prepare
from arena.results.effort import Effort
from arena.results.record import CaseTiming, Estimate, Mode, Round
from arena.results.verdict import Status
from arena.task.definition import Arguments, Task
from arena.task.numerics.reference import Reference
from tests.judge.test_timer import Allocating
from tests.platforms.fake_device import GIB

PLAN = PassPlan(short=1, long=3)


class Obedient:
    """A worker that answers every `rms_norm` at once, in the buffer that the judge sees."""

    def __init__(self, side: dict[str, TimedProgram]) -> None:
        self._side = side

    def ask(self, *_: object) -> Done:
        return Done(0.0)

    def timed(self, message: Pass, _: float) -> tuple[float, Done]:
        sets, part = self._side["own"].sets, PLAN.part(message.name)
        x, weight, eps = sets.view("x")[part], sets.view("weight")[part], sets.arguments.names["eps"]
        inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + float(eps))
        sets.view("y")[part] = x * inverse * weight[:, None]
        return 0.001, Done(0.0)

    def stop(self) -> None:
        """It has no process."""

    def processor_s(self) -> float:
        """It takes no time."""
        return 0.0

    def still(self) -> AbstractContextManager[None]:
        """Nor does it run."""
        return nullcontext()


def side(kind: type[Obedient] = Obedient) -> TimedProgram:
    own: dict[str, TimedProgram] = {}
    worker = kind(own)
    worker_program: Any = SimpleNamespace(worker=worker, program=SimpleNamespace(copies=()), ready=lambda case: worker)
    own["own"] = TimedProgram(worker_program, CpuPlatform(), 1.0)
    return own["own"]


def bound(one: TimedProgram, case: Arguments, task: Task) -> TimedProgram:
    one.bind(case, Reference(task.reference_path), {name: PLAN.indices(name) for name in (LONG, SHORT, SINGLE)})
    return one


def test_to_warm_up_one_draw_is_enough_for_all_sets(case: Arguments, task: Task) -> None:
    x = bound(side(), case, task).sets.view("x")
    assert x.shape[0] == PLAN.sets
    assert all(torch.equal(x[0], other) for other in x)
    assert bool((x[0] != x[0].flatten()[0]).any())


def test_no_answer_outlives_its_look(case: Arguments, task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both sides get the same data, and change places later: who finds the other's answers need not compute."""
    baseline, candidate = (bound(side(), case, task) for _ in range(2))
    seen = []

    def run(one: TimedProgram, name: str) -> tuple[float, float]:
        other = baseline if one is candidate else candidate
        seen.append(bool(other.sets.view("y").isnan().all()))
        return original(one, name)

    original = TimedProgram.run
    monkeypatch.setattr(TimedProgram, "run", run)
    measured, finding = checking(task)._round(baseline, candidate, case, PLAN, (SHORT, LONG))
    assert finding.status is GOOD.status, finding.detail
    assert measured is not None
    assert seen == [True] * 4


class Straying(Obedient):
    """It writes past the end of `y` as well, in every call and always the same."""

    def timed(self, message: Pass, timeout_s: float) -> tuple[float, Done]:
        self.stray(PLAN.indices(message.name))
        return super().timed(message, timeout_s)

    def stray(self, indices: Sequence[int]) -> None:
        sets = self._side["own"].sets
        y = sets.arguments.tensors["y"]
        assert y is not None
        for index in indices:
            begin = sets.offset("y") + index * int(sets.bits(y).stride(0)) * y.item_bytes
            sets.raw[begin + y.span * y.item_bytes] = 0


def test_a_stray_write_is_seen_that_has_left_the_same_before(case: Arguments, task: Task) -> None:
    """As in the replay with which a graph is made ready."""
    baseline, candidate = (bound(one, case, task) for one in (side(), side(Straying)))
    worker: Any = candidate.worker
    worker.stray(range(PLAN.sets))
    assert checking(task)._rounds(case, PLAN, [], False, baseline, candidate).status is Status.OUT_OF_BOUNDS


class StrayingEarly(Straying):
    """The same, but already when it is woken for a pass."""

    def ask(self, *told: object) -> Done:
        if isinstance(told[0], Prepare):
            self.stray(range(PLAN.sets))
        return Done(0.0)


def test_a_stray_write_is_seen_that_comes_before_the_pass(case: Arguments, task: Task) -> None:
    baseline, candidate = (bound(one, case, task) for one in (side(), side(StrayingEarly)))
    assert checking(task)._rounds(case, PLAN, [], False, baseline, candidate).status is Status.OUT_OF_BOUNDS


def test_there_is_no_set_that_no_pass_uses() -> None:
    for plan, names in ((PassPlan(0, 1), (SHORT, LONG)), (PLAN, (SHORT, LONG, SINGLE))):
        assert sorted(index for name in names for index in plan.indices(name)) == list(range(plan.sets))


def test_what_lies_around_a_set_does_not_tell_whether_it_is_compared(
    case: Arguments, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the same in all passes, of all sets, in the buffers of both sides, which change places."""
    baseline, candidate = sides = (bound(side(), case, task), bound(side(), case, task))
    before = [around(one) for one in sides]
    seen: list[list[torch.Tensor]] = []

    def run(one: TimedProgram, name: str) -> tuple[float, float]:
        seen.append([around(each) for each in sides])
        return original(one, name)

    original = TimedProgram.run
    monkeypatch.setattr(TimedProgram, "run", run)
    rounds: list[Round] = []
    assert checking(task)._rounds(case, PLAN, rounds, False, baseline, candidate).status is Status.PASSED
    assert len(seen) == 2 * (2 * len(rounds) + 2)
    assert all(torch.equal(one, other) for looks in seen for one, other in zip(looks, seen[0], strict=True))
    assert all(bool((one != other).any(1).all()) for one, other in zip(before, seen[0], strict=True)), "new in each set"


def around(one: TimedProgram) -> torch.Tensor:
    """What lies around each set but for the edges of all: (sets, bytes)."""
    return torch.stack([one.sets.outside(index)[2 * _EDGE_BYTES :] for index in range(one.sets.count)])


def checking(task: Task) -> PerformanceCheck:
    """On the CPU, where there is one placement."""
    nothing: Any = None
    timer: Any = SimpleNamespace(
        platform=CpuPlatform(), run=lambda side, name: side.run(name), placements=(Placement(nothing, nothing),)
    )
    return PerformanceCheck(timer, Reference(task.reference_path), 1.0)


HICCUP, CHEAT = OutputCheck(Status.TIMING_MISMATCH, "a hiccup"), OutputCheck(Status.IMPLAUSIBLE, "too good")
WRONG = OutputCheck(Status.WRONG_RESULT, "not even close")
UNDECIDED = OutputCheck(Status.PASSED, "who knows")


@pytest.mark.parametrize(
    ("found", "wanted", "doubted"),
    [
        ([GOOD], GOOD, ""),
        ([HICCUP, GOOD], GOOD, "a hiccup"),
        ([HICCUP, CHEAT], CHEAT, "a hiccup"),
        ([UNDECIDED, GOOD], GOOD, "who knows"),
        ([UNDECIDED, UNDECIDED], GOOD, "who knows"),
        ([CHEAT, WRONG], WRONG, None),
        ([WRONG], WRONG, None),
    ],
)
def test_what_is_doubted_is_measured_once_more(
    case: Arguments, monkeypatch: pytest.MonkeyPatch, found: list[OutputCheck], wanted: OutputCheck, doubted: str | None
) -> None:
    """The second measurement counts, whatever it says; one that failed otherwise is not repeated."""
    left = iter(found)
    one = Estimate(1.0, 1.0, 1.0)

    def compared(*_: object) -> tuple[OutputCheck, CaseTiming | None]:
        finding = next(left)
        timing = CaseTiming(one, one, one, Mode.GRAPH, 1, 3, "evicted", ())
        if finding is UNDECIDED:
            return GOOD, replace(timing, undecided=finding.detail, noisy=True)
        return finding, None if finding is WRONG else timing

    monkeypatch.setattr(PerformanceCheck, "_compared", compared)
    nothing: Any = None
    finding, timing = PerformanceCheck(nothing, nothing, 1.0).compare(side(), side(), case, (one, 1.0))
    assert finding == wanted
    assert (timing.doubted if timing else None) == doubted
    assert next(left, None) is None


@pytest.mark.parametrize(
    ("late", "rounds"), [([], 4), ([1], 8), ([0, 2, 3], 16)], ids=["quiet", "one-round-of-four", "three-of-four"]
)
def test_a_baseline_alone_is_measured_until_no_single_round_decides(
    case: Arguments, monkeypatch: pytest.MonkeyPatch, late: Sequence[int], rounds: int
) -> None:
    """Where a host takes processors away, four rounds had a latency twice as long, or of next to nothing (H200)."""
    device = Allocating(150 * GIB)
    drawn: list[int] = []
    nothing: Any = None

    def draw(*_: object) -> dict[str, torch.Tensor]:
        drawn.append(len(drawn))
        return {}

    def run(_: object, __: object, name: str) -> tuple[float, float]:
        return (2e-4 if name == SHORT else 2e-3 + (1e-3 if drawn[-1] in late else 0.0)), 0.0

    monkeypatch.setattr(Timer, "run", run)
    monkeypatch.setattr(Planner, "probe", lambda *_: 1e-4)
    monkeypatch.setattr(PerformanceCheck, "_draw", draw)
    alone: Any = SimpleNamespace(bind=lambda *_: None, refresh=lambda *_: None, unbind=lambda: None)
    check = PerformanceCheck(Timer(device, device.facts()), nothing, 1.0)
    assert check.isolated(alone, case)[0].value == pytest.approx(0.1)
    assert len(drawn) == rounds


@pytest.mark.parametrize(("effort", "calls"), [(Effort.FULL, 25), (Effort.SCREEN, 20)])
def test_passes_are_as_long_as_the_effort_asks_for(
    case: Arguments, monkeypatch: pytest.MonkeyPatch, effort: Effort, calls: int
) -> None:
    """A baseline alone has the passes of a screen always."""
    device = Allocating(150 * GIB)
    timer = Timer(device, device.facts())
    monkeypatch.setattr(Timer, "run", lambda self, one, name: (1e-4, 0.0))
    monkeypatch.setattr(Planner, "probe", lambda *_: 1e-4)
    monkeypatch.setattr(Planner, "_rough_call_s", lambda *_: 1e-4)
    nothing: Any = None
    check = PerformanceCheck(timer, Reference(case.task.reference_path), 1.0, effort)
    bound: list[int] = []
    both: Any = SimpleNamespace(
        bind=lambda _, __, passes, ___: bound.append(len(passes[LONG])),
        refresh=lambda *_: None,
        unbind=lambda: None,
        call_s=None,
    )
    monkeypatch.setattr(PerformanceCheck, "_draw", lambda *_: {})
    check.isolated(both, case)
    assert bound == [20]
    place: Any = SimpleNamespace(baseline=nothing, candidate=nothing)
    assert check.planner.plan(both, both, case, 1e-4, place).long == calls


def measuring(budget_s: float) -> PerformanceCheck:
    nothing: Any = None
    timer: Any = SimpleNamespace(
        timing_config=_GPU, placements=(Placement(nothing, nothing), Placement(nothing, nothing, swapped=True))
    )
    return PerformanceCheck(timer, nothing, budget_s)


def some_rounds(candidate_s: float, spread: float, count: int = 8) -> list[Round]:
    """Rounds of a baseline that takes 0.1 ms a call, with a candidate that is slower and faster by `spread` in turn."""
    taken = (candidate_s * (1 + spread * (-1) ** (index // 2)) for index in range(count))
    return [Round(5e-4, 5 * each, 4e-3, 40 * each, swapped=bool(index % 2)) for index, each in enumerate(taken)]


@pytest.mark.parametrize(
    ("candidate_s", "spread", "count", "budget_s", "more"),
    [
        (1e-4, 0.001, 8, 1e6, False),
        (1e-4, 0.2, 8, 1e6, True),
        (1e-4, 0.2, 8, 0.0, False),
        (2e-4, 0.2, 8, 1e6, False),
        (1e-4, 0.2, performance._MOST_ROUNDS - 8, 1e6, True),
        (1e-4, 0.2, performance._MOST_ROUNDS, 1e6, False),
    ],
    ids=["narrow", "wide", "out-of-time", "surely-slower", "many", "too-many"],
)
def test_rounds_go_on_while_the_interval_is_wide(
    candidate_s: float, spread: float, count: int, budget_s: float, more: bool
) -> None:
    """The record keeps each round, and must fit a frame: there is a bound however long the budget."""
    given = some_rounds(candidate_s, spread, count)
    assert measuring(budget_s)._worth_more(given, PassPlan(5, 40), 1e-3) is more


def test_beyond_its_budget_only_a_noisy_case_goes_on() -> None:
    for spread, more in ((0.012, False), (0.2, True)):
        width = measuring(0.5)._speedup(some_rounds(1e-4, spread), 35).half_width
        assert width > _GPU.wanted_half_width and (width > _GPU.noisy_half_width) is more
        assert measuring(0.5)._worth_more(some_rounds(1e-4, spread), PassPlan(5, 40), 1.0) is more


def test_what_no_number_of_rounds_shows_is_no_reason_for_more() -> None:
    """Passes of 0.3 ms: reaching the workers is off by 3 % of them, whatever the rounds say."""
    short = [Round(4e-5, 4e-5, 3.2e-4, 3.2e-4 * each, swapped=at > 3) for at, each in enumerate([1, 1.002] * 4)]
    check, plan = measuring(1e6), PassPlan(40, 320)
    assert check._speedup(short, plan.long - plan.short).half_width > _GPU.noisy_half_width
    assert check._worth_more(short, plan, 0.0), "the budget is used: what counts its calls is found out by many"
    assert not check._worth_more(short, plan, 1e6)


def test_the_rounds_of_a_case_share_what_its_arithmetic_allows(
    case: Arguments, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no two cases do: the next begins with nothing."""
    baseline, candidate = (bound(side(), case, task) for _ in range(2))
    known: list[dict[str, float]] = []

    def check_outputs(*_: object, errors: dict[str, float], **__: object) -> OutputCheck:
        known.append(dict(errors))
        errors["y"] = 0.5
        return GOOD

    monkeypatch.setattr(performance, "check_outputs", check_outputs)
    monkeypatch.setattr(performance, "_moved", lambda *_: GOOD)
    monkeypatch.setattr(PerformanceCheck, "_worth_more", lambda *_: False)
    check = checking(task)
    for _ in range(2):
        known.clear()
        assert check._all_rounds(baseline, candidate, case, PLAN)[1].status is Status.PASSED
        assert known[0] == {} and known[1:] == [{"y": 0.5}] * (len(known) - 1) != []


def test_both_placements_get_as_many_rounds_and_the_one_that_is_bound_goes_first(
    case: Arguments, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    baseline, candidate = (bound(side(), case, task) for _ in range(2))
    places = [False]
    made: list[bool] = []

    def one_round(*_: object) -> tuple[Round, OutputCheck]:
        made.append(places[-1])
        return Round(5e-4, 5e-4, 4e-3, 4e-3), GOOD

    monkeypatch.setattr(Planner, "bind", lambda *given: places.append(given[-1].swapped))
    monkeypatch.setattr(PerformanceCheck, "_round", one_round)
    monkeypatch.setattr(performance, "_moved", lambda *_: GOOD)
    looks = [True, False]
    monkeypatch.setattr(PerformanceCheck, "_worth_more", lambda *_: looks.pop(0))
    rounds, finding = measuring(1e6)._all_rounds(baseline, candidate, case, PassPlan(5, 40))
    assert finding.status is Status.PASSED and not looks
    assert places == [False, True, False]
    assert [each.swapped for each in rounds] == made == [False] * 4 + [True] * 8 + [False] * 4

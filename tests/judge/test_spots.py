"""A pass that goes on after its worker has said that it is over, on a device that lets the judge through meanwhile."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from arena.judge.correctness.buffers import EVERY, Sets
from arena.judge.performance.spots import Spots, _merged
from arena.judge.performance.stage import PerformanceCheck
from arena.judge.performance.timed_program import TimedProgram
from arena.judge.performance.waits import LONG, SHORT
from arena.platforms.cpu.platform import CpuPlatform
from arena.processes.protocol import Done, Pass
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Arguments, Task, arguments
from arena.task.numerics.reference import Reference
from tests.judge.test_rounds import PLAN, Obedient

FIRST_TWO = slice(0, 2)


@pytest.fixture
def sets(case: Arguments) -> Sets:
    made = Sets(CpuPlatform(), case, 3)
    made.poison()
    made.view("x").fill_(0.0)
    return made


def test_what_is_written_later_is_seen(sets: Sets) -> None:
    spots = Spots(sets)
    spots.draw(FIRST_TWO)
    spots.read()
    assert not spots.changed()
    sets.view("y")[1] = 1.0
    assert spots.changed()


def test_what_replaces_a_wrong_answer_is_seen_too(sets: Sets) -> None:
    """It holds no poison: it was filled with zeros first, which is soon done."""
    sets.view("y").fill_(0.0)
    spots = Spots(sets)
    spots.draw(FIRST_TWO)
    spots.read()
    sets.view("y")[0] = 1.0
    assert spots.changed()


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((4, 6), (6, 1)),
        ((4, 6), (8, 1)),
        ((3, 1, 5), (40, 7, 2)),
        ((2, 3, 4), (1, 2, 6)),
        ((5,), (3,)),
        ((1, 1), (9, 9)),
    ],
)
def test_axes_as_one_reach_the_same_elements_in_the_same_order(
    shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    axes, reached = _merged(shape, strides), []
    for number in range(math.prod(shape)):
        place, left = 0, number
        for size, stride in axes[:-1]:
            place, left = place + left % size * stride, left // size
        reached.append(place + left * axes[-1][1])
    assert reached == [sum(map(int.__mul__, index, strides)) for index in product(*map(range, shape))]


def test_sets_of_other_passes_and_inputs_do_not_count(sets: Sets) -> None:
    spots = Spots(sets)
    spots.draw(FIRST_TWO)
    spots.read()
    sets.view("y")[2] = 1.0
    sets.view("x")[0] = 1.0
    assert not spots.changed()


@pytest.mark.parametrize("late", [0, 1])
def test_a_row_in_each_set_is_seen_to_be_late(case: Arguments, late: int) -> None:
    """Places differ from set to set: of 64 sets one at least has an element of it, but for once in 10^9 times."""
    sets = Sets(CpuPlatform(), case, 64)
    sets.view("y").fill_(0.0)
    spots = Spots(sets)
    spots.draw(EVERY)
    spots.read()
    sets.view("y")[:, :late] = 1.0
    assert spots.changed() is bool(late)


def test_many_spots_see_what_few_would_mostly_miss(case: Arguments) -> None:
    """A last element alone: of 16 of 1,000 a set, one in 60 would be it."""
    sets = Sets(CpuPlatform(), case, 3)
    sets.view("y").fill_(0.0)
    few, many = (Spots(sets, many=many) for many in (False, True))
    for spots in (few, many):
        spots.draw(EVERY)
    numel = sets.view("y")[0].numel()
    read = [sum(len(places) for _, places in spots._places) for spots in (few, many)]
    assert read == [3 * min(numel, 16), 3 * numel]
    many.read()
    sets.view("y")[1].view(-1)[-1] = 1.0
    assert many.changed()


def test_an_input_that_is_changed_in_place_counts_too() -> None:
    task = load_task(TASKS / "triton2triton/sampling/bad_words")
    sets = Sets(CpuPlatform(), arguments(task, task.seen[0]), 3)
    sets.raw.zero_()
    spots = Spots(sets)
    for tensor in sets.arguments.inputs:
        spots.draw(EVERY)
        spots.read()
        sets.bits(tensor).fill_(1)
        assert spots.changed() is tensor.spec.mutable
    assert any(tensor.spec.mutable for tensor in sets.arguments.inputs)


def test_one_element_that_is_changed_in_place_is_seen_among_hundreds() -> None:
    """Of what stays as it is in most places many elements are read, here all 1500."""
    task = load_task(TASKS / "triton2triton/sampling/bad_words")
    sets = Sets(CpuPlatform(), arguments(task, task.seen[2]), 3)
    sets.raw.zero_()
    spots = Spots(sets)
    spots.draw(EVERY)
    spots.read()
    sets.view("logits")[1, 2, 137] = -math.inf
    assert spots.changed()


class OnADevice(CpuPlatform):
    """As a GPU is: a pass is over when the device has ended it, and a kernel of the judge may come in between."""

    graphs = True

    def launch_tiny_kernel(self) -> None:
        """It gets through at once."""


class Hasty(Obedient):
    """A worker whose device is at the last sets still when it answers."""

    left: Callable[[], object] = staticmethod(lambda: None)
    ready_s = over_s = 0.0

    def timed(self, message: object, timeout_s: float) -> tuple[float, Done]:
        if not isinstance(message, Pass):
            return 0.0, Done(0.0)
        found = super().timed(message, timeout_s)
        answers = self._side["own"].sets.view("y")
        last = PLAN.part(message.name).stop - 1
        right = answers[last].clone()
        answers[last] = 0.0
        self.left = lambda: answers[last].copy_(right)
        return found

    def halt(self) -> None:
        """Its threads stop, the device goes on."""

    def stop(self) -> None:
        """By now the device is done."""
        self.left()


class Waiting(Hasty):
    """A worker that answers when its device is done."""

    def timed(self, message: object, timeout_s: float) -> tuple[float, Done]:
        found = super().timed(message, timeout_s)
        self.left()
        return found


def side(kind: type[Hasty]) -> TimedProgram:
    own: dict[str, TimedProgram] = {}
    worker = kind(own)
    worker_program: Any = SimpleNamespace(worker=worker, program=SimpleNamespace(copies=()), ready=lambda case: worker)
    own["own"] = TimedProgram(worker_program, OnADevice(), 1.0)
    return own["own"]


@pytest.mark.parametrize("delays", [True, False])
def test_where_late_work_delays_nothing_more_is_compared(case: Arguments, task: Task, delays: bool) -> None:
    one = side(Waiting)
    one._platform.late_work_delays = delays
    one.bind(case, Reference(task.reference_path), {LONG: PLAN.indices(LONG), SHORT: PLAN.indices(SHORT)})
    assert one._spots is not None
    assert [elements._many for elements in one._spots._written] == [not delays]


@pytest.mark.parametrize(("kind", "status"), [(Waiting, Status.PASSED), (Hasty, Status.WRONG_RESULT)])
def test_a_pass_that_was_not_over_is_wrong(case: Arguments, task: Task, kind: type[Hasty], status: Status) -> None:
    timer: Any = SimpleNamespace(platform=OnADevice(), run=lambda side, name: side.run(name))
    check = PerformanceCheck(timer, Reference(task.reference_path), 1.0)
    both = side(Waiting), side(kind)
    for one in both:
        one.bind(case, Reference(task.reference_path), {LONG: PLAN.indices(LONG), SHORT: PLAN.indices(SHORT)})
    _, finding = check._round(*both, case, PLAN, (SHORT, LONG))
    assert finding.status is status, finding.detail
    assert "[wrote_after_end]" in finding.detail or status is Status.PASSED

"""JudgeQueue: the oldest request first, but to the judge that knows its baseline; nobody waits for one for ever."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import structs

from arena.runs.service.judge_pool import JudgePool
from arena.runs.service.judge_queue import JudgeQueue, QueuedRequest
from arena.task.definition import Task
from arena.task.options import Options
from tests.fakes import FakeEvaluator
from tests.runs.service.examples import kernel


@dataclass
class Judge:
    """Equal to every other one, as dataclasses of the same values are."""


@dataclass
class Place:
    """Two judges at work; the first knows `a`, the second `b`."""

    first: Judge = field(default_factory=Judge)
    second: Judge = field(default_factory=Judge)
    queue: JudgeQueue[Judge] = field(init=False)

    def __post_init__(self) -> None:
        self.queue = JudgeQueue([self.first, self.second], 1)
        for judge, baseline in ((self.first, "a"), (self.second, "b")):
            assert self.queue.take_idle(None) is judge
            self.queue.give_back(judge, baseline)
            assert self.queue.take_idle(baseline) is judge

    def waiting(self, baseline: str | None) -> QueuedRequest[Judge]:
        """Have a request wait."""
        request: QueuedRequest[Judge] = QueuedRequest(baseline)
        self.queue.take(request, None)
        assert request.judge is None and not request.called.is_set()
        return request


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_request_goes_to_the_judge_that_knows_its_baseline(place: Place) -> None:
    of_b, of_a = place.waiting("b"), place.waiting("a")
    place.queue.give_back(place.first)
    assert of_a.judge is place.first and of_a.called.is_set() and of_b.judge is None
    place.queue.give_back(place.second)
    assert of_b.judge is place.second


def test_what_no_judge_knows_goes_by_age(place: Place) -> None:
    requests = [place.waiting(baseline) for baseline in ("x", None, "a")]
    for request in requests:
        place.queue.give_back(place.first)
        assert request.judge is place.first


def test_no_judge_is_idle_while_somebody_waits(place: Place) -> None:
    of_b = place.waiting("b")
    place.queue.give_back(place.first)
    assert of_b.judge is place.first


def test_a_request_is_passed_over_twice_for_each_judge_at_most(place: Place) -> None:
    of_b, later = place.waiting("b"), [place.waiting("a") for _ in range(6)]
    for _ in range(5):
        place.queue.give_back(place.first)
    assert [request.judge is place.first for request in later] == [True] * 4 + [False] * 2
    assert of_b.judge is place.first


def test_of_free_judges_the_one_that_was_told_or_knows_the_baseline_is_taken(place: Place) -> None:
    place.queue.give_back(place.first)
    place.queue.give_back(place.second)
    for baseline, told, expected in (
        ("b", None, place.second),
        ("b", place.first, place.first),
        ("x", None, place.second),
    ):
        request: QueuedRequest[Judge] = QueuedRequest(baseline)
        place.queue.take(request, told)
        assert request.judge is expected
        place.queue.give_back(request.judge)


def test_no_judge_has_several_requests_while_another_one_has_none() -> None:
    """Where each is given several at once, who knows the baseline does not get all of them."""
    judges = [Judge() for _ in range(3)]
    queue = JudgeQueue(judges, 3)
    assert queue.take_idle("a") is judges[0]
    queue.give_back(judges[0], "a")
    for expected in ([0], [1, 2], [1, 2], [0]):
        taken = queue.take_idle("a")
        assert any(taken is judges[number] for number in expected)
    assert {id(queue.take_idle("b")), id(queue.take_idle("b"))} == {id(judges[1]), id(judges[2])}


def test_what_a_lost_judge_knew_is_known_no_more(place: Place) -> None:
    of_b, of_a = place.waiting("b"), place.waiting("a")
    assert place.queue.lose(place.second) and not place.queue.lose(place.second)
    place.queue.give_back(place.second, "b")
    assert not of_b.called.is_set()
    place.queue.give_back(place.first)
    assert of_b.judge is place.first
    fresh = Judge()
    place.queue.add(fresh)
    assert of_a.judge is fresh


def test_at_the_end_everybody_is_called(place: Place) -> None:
    request = place.waiting("a")
    place.queue.end()
    assert request.called.is_set() and request.judge is None


def test_two_judges_learn_half_of_the_baselines_each(task: Task, tmp_path: Path) -> None:
    """By options here, which a baseline is remembered by as well; whoever comes again goes where it was."""
    judges = [FakeEvaluator(), FakeEvaluator()]
    judge_pool = JudgePool(judges)
    thorough = [Options(seeds=seeds) for seeds in range(1, 7)]
    for options in thorough:
        judge_pool.evaluate(task, kernel(tmp_path, "k"), options)
    assert [len(judge.options) for judge in judges] == [3, 3]
    first = [list(judge.options) for judge in judges]
    for options in reversed(thorough):
        judge_pool.evaluate(task, kernel(tmp_path, "k"), structs.replace(options, profile=True))
    assert [[one.seeds for one in judge.options[3:]] for judge in judges] == [
        [one.seeds for one in reversed(options)] for options in first
    ]

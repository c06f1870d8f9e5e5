"""Judges that are lost: what they were asked goes elsewhere, and they are replaced."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from arena.errors import InfrastructureError, JudgeLost, JudgeUnavailable
from arena.results.verdict import Status
from arena.runs.service.judge_pool import Evaluator, JudgePool
from arena.task.definition import Task
from arena.task.options import Options
from tests.fakes import FakeEvaluator
from tests.runs.service.examples import kernel


@dataclass
class Lost(FakeEvaluator):
    """A judge elsewhere that is gone when it is asked."""

    shares_machine: bool = False
    killed: bool = False

    def begin(self) -> None:
        self.seen.append(("", "", None))
        raise JudgeLost("the judge on node-7: it is gone")

    def kill(self) -> None:
        self.killed = True


def test_what_a_lost_judge_was_asked_goes_to_another_one(task: Task, tmp_path: Path) -> None:
    lost, other = Lost(), FakeEvaluator()
    judge_pool = JudgePool([lost, other])
    for name in ("k", "l", "m"):
        assert judge_pool.evaluate(task, kernel(tmp_path, name), Options()).status is Status.PASSED
    assert len(lost.seen) == 1 and len(other.seen) == 3  # a lost one is not asked again
    assert judge_pool.check_baseline(task, task.path / "heldout.yaml", Options())


def test_an_evaluation_moves_at_most_twice(task: Task, tmp_path: Path) -> None:
    lost, other = [Lost() for _ in range(3)], FakeEvaluator()
    judge_pool = JudgePool([*lost, other])
    with pytest.raises(JudgeLost, match="node-7"):
        judge_pool.evaluate(task, kernel(tmp_path, "k"), Options())
    assert [len(one.seen) for one in lost] == [1, 1, 1] and other.seen == []
    assert judge_pool.evaluate(task, kernel(tmp_path, "k"), Options()).status is Status.PASSED


def test_a_lost_judge_is_replaced(task: Task, tmp_path: Path) -> None:
    lost, fresh = Lost(), FakeEvaluator()
    gone: list[Evaluator] = []

    def replace(judge: Evaluator) -> Evaluator:
        assert lost.killed  # or its device would still be held
        gone.append(judge)
        return fresh

    judge_pool = JudgePool([lost], replace=replace)
    assert judge_pool.evaluate(task, kernel(tmp_path, "k"), Options()).status is Status.PASSED
    assert gone == [lost] and len(fresh.seen) == 1


def test_where_no_judge_is_left_nobody_waits(task: Task, tmp_path: Path) -> None:
    def replace(judge: Evaluator) -> Evaluator:
        raise JudgeUnavailable("no node has room")

    judge_pool = JudgePool([Lost()], replace=replace)
    for _ in range(2):
        with pytest.raises(InfrastructureError, match=r"no judge is left: no node has room"):
            judge_pool.evaluate(task, kernel(tmp_path, "k"), Options())


@pytest.mark.parametrize("raised", [OSError("no descriptor"), ValueError("odd"), JudgeUnavailable("no room")])
def test_where_replacing_fails_in_any_way_nobody_waits(task: Task, tmp_path: Path, raised: Exception) -> None:
    def replace(judge: Evaluator) -> Evaluator:
        raise raised

    with pytest.raises(InfrastructureError, match=f"no judge is left: .*{raised}"):
        in_time(JudgePool([Lost()], replace=replace), task, tmp_path)


@dataclass
class Unkillable(Lost):
    """A judge that is gone, and whose end cannot be seen to."""

    def kill(self) -> None:
        raise OSError("no such process")


def test_a_lost_judge_that_cannot_be_killed_is_replaced(task: Task, tmp_path: Path) -> None:
    fresh = FakeEvaluator()
    assert in_time(JudgePool([Unkillable()], replace=lambda lost: fresh), task, tmp_path) is Status.PASSED


def in_time(judge_pool: JudgePool, task: Task, tmp_path: Path) -> Status:
    """Evaluate, and fail where that takes for good."""
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(judge_pool.evaluate, task, kernel(tmp_path, "k"), Options())
        try:
            return asked.result(timeout=30).status
        except TimeoutError:
            judge_pool.cancel()
            raise


@dataclass
class Slow(FakeEvaluator):
    """A judge that is busy until it is let go."""

    begun: threading.Event = field(default_factory=threading.Event)
    free: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        self.begun.set()
        assert self.free.wait(60)


def test_whoever_waits_for_a_judge_that_never_comes_back_is_told(task: Task, tmp_path: Path) -> None:
    slow = Slow()
    judge_pool = JudgePool([slow], stalled_s=0.2)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(judge_pool.evaluate, task, kernel(tmp_path, "k"), Options())
        assert slow.begun.wait(30)
        with pytest.raises(InfrastructureError, match=r"waited for a judge: none of 1 came back in 0 s, and 1 req"):
            judge_pool.evaluate(task, kernel(tmp_path, "l"), Options())
        slow.free.set()
        assert first.result().status is Status.PASSED
    assert judge_pool.evaluate(task, kernel(tmp_path, "m"), Options()).status is Status.PASSED


def test_a_judge_that_comes_after_the_end_is_killed(task: Task, tmp_path: Path) -> None:
    lost, late = Lost(), Lost()
    asked, closed, done = threading.Event(), threading.Event(), threading.Event()

    def replace(judge: Evaluator) -> Evaluator:
        asked.set()
        assert closed.wait(10)
        return late

    judge_pool = JudgePool([lost], replace=replace)

    def ask() -> None:
        with pytest.raises(InfrastructureError, match="given up"):
            judge_pool.evaluate(task, kernel(tmp_path, "k"), Options())
        done.set()

    threading.Thread(target=ask).start()
    assert asked.wait(60)
    judge_pool.cancel()
    closed.set()
    assert done.wait(60)
    for _ in range(100):
        if late.killed:
            return
        time.sleep(0.05)
    raise AssertionError("the late judge is still there")


@dataclass
class Together(FakeEvaluator):
    """Answers two requests at once, or none; as one that is lost where told so."""

    barrier: threading.Barrier = field(default_factory=lambda: threading.Barrier(2, timeout=60))
    lost: bool = False

    def begin(self) -> None:
        self.barrier.wait()
        if self.lost:
            raise JudgeLost("the judge on node-7: it is gone")


def both(judge_pool: JudgePool, task: Task, tmp_path: Path) -> list[Status]:
    """What two requests at once come to."""
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(judge_pool.evaluate, task, kernel(tmp_path, f"k{i}"), Options()) for i in range(2)]
        return [one.result().status for one in asked]


def test_a_judge_that_compiles_for_itself_is_given_two_requests(task: Task, tmp_path: Path) -> None:
    assert both(JudgePool([Together()], queued=2), task, tmp_path) == [Status.PASSED, Status.PASSED]


def test_a_judge_that_two_requests_find_lost_is_replaced_once(task: Task, tmp_path: Path) -> None:
    replaced: list[Evaluator] = []

    def replace(lost: Evaluator) -> Evaluator:
        replaced.append(lost)
        return Together()

    lost = Together(lost=True)
    judge_pool = JudgePool([lost], replace=replace, queued=2)
    assert both(judge_pool, task, tmp_path) == [Status.PASSED, Status.PASSED] and replaced == [lost]
    assert both(judge_pool, task, tmp_path) == [Status.PASSED, Status.PASSED]

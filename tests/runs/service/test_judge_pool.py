"""Turns: first come, first served; agents stand still while something is measured; giving up ends everybody."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from arena.errors import InfrastructureError
from arena.judge.process.client import JudgeClient
from arena.results.environment import Environment
from arena.results.record import Evaluation
from arena.results.verdict import Stage, Status, Verdict
from arena.runs.service.judge_pool import JudgePool, started
from arena.runs.service.judge_queue import Owner
from arena.task.definition import Task
from arena.task.options import Options
from tests.fakes import HERE, FakeEvaluator
from tests.runs.service.examples import kernel


@dataclass
class Slow(FakeEvaluator):
    """Judges when it is told to, and notes who is at work meanwhile."""

    go: threading.Event = field(default_factory=threading.Event)
    entered: threading.Event = field(default_factory=threading.Event)

    def begin(self) -> None:
        self.entered.set()
        assert self.go.wait(10)

    def kill(self) -> None:
        self.failing.add("scale")
        self.go.set()


@dataclass
class Told(FakeEvaluator):
    """Notes the folders that it is told of, and those that come with a candidate."""

    told: list[Path] = field(default_factory=list)
    came: list[Path] = field(default_factory=list)
    fails: bool = False

    def expect(self, task: Path, options: Options, heldout: Path | None, compiled: Path) -> None:
        self.told.append(compiled)
        assert not self.fails
        assert sorted(path.name for path in compiled.iterdir()) == ["heldout", "seen"]

    def evaluate(self, *arguments: Any) -> Evaluation:
        self.came.append(arguments[-1])
        return super().evaluate(*arguments)


@dataclass
class Workers:
    """Processes that write down what is done to them."""

    heard: list[str] = field(default_factory=list)

    def pause(self) -> None:
        self.heard.append("pause")

    def resume(self) -> None:
        self.heard.append("resume")

    def kill(self) -> None:
        self.heard.append("kill")

    def active_s(self) -> float:
        return 0.0


class Compiling:
    """A builder by which everything compiles."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def compile(self, *_: object) -> None:
        self.asked.set()

    def kill(self) -> None:
        """Nothing in hand."""


class Refusing:
    """A builder by which nothing compiles."""

    def compile(
        self,
        task: Path,
        candidate: Path,
        options: Options,
        environment: Environment,
        heldout: Path | None = None,
        into: Path | None = None,
    ) -> Evaluation | None:
        verdict = Verdict(Stage.COMPILE, Status.COMPILE_ERROR, "no")
        return Evaluation("t", "triton2triton", "h", "c", environment, (verdict,), ())

    def kill(self) -> None:
        """Nothing in hand."""


def test_whoever_waited_longest_is_next(task: Task, tmp_path: Path) -> None:
    judge = Slow()
    judge_pool = JudgePool([judge])
    threads = []
    for index in range(6):
        file = kernel(tmp_path, f"k{index}")
        thread = threading.Thread(target=judge_pool.evaluate, args=(task, file, Options()))
        thread.start()
        threads.append(thread)
        time.sleep(0.02)  # so that they come in this order
    judge.go.set()
    for thread in threads:
        thread.join(10)
    assert [text for _, text, _ in judge.seen] == [f"# k{index}" for index in range(6)]


def test_agents_stand_still_while_something_is_measured(task: Task, tmp_path: Path) -> None:
    judge, early, late = Slow(), Workers(), Workers()
    judge_pool = JudgePool([judge])
    with judge_pool.attend(early):
        measuring = threading.Thread(target=judge_pool.evaluate, args=(task, kernel(tmp_path, "k"), Options()))
        measuring.start()
        assert judge.entered.wait(10)
        assert early.heard == ["pause"]
        with judge_pool.attend(late):
            assert late.heard == ["pause"]
            judge.go.set()
            measuring.join(10)
            assert early.heard == late.heard == ["pause", "resume"]


def test_two_judges_measure_side_by_side_and_the_last_wakes_the_agents(task: Task, tmp_path: Path) -> None:
    one, two, agent = Slow(), Slow(), Workers()
    judge_pool = JudgePool([one, two])
    with judge_pool.attend(agent):
        threads = [
            threading.Thread(target=judge_pool.evaluate, args=(task, kernel(tmp_path, f"k{index}"), Options()))
            for index in range(2)
        ]
        for thread in threads:
            thread.start()
        assert one.entered.wait(10) and two.entered.wait(10)
        one.go.set()
        threads[0].join(10)
        assert agent.heard == ["pause"]
        two.go.set()
        threads[1].join(10)
        assert agent.heard == ["pause", "resume"]


def test_a_harness_that_fails_gives_its_turn_back(task: Task, tmp_path: Path) -> None:
    judge, agent = FakeEvaluator(failing={"scale"}), Workers()
    judge_pool = JudgePool([judge])
    with judge_pool.attend(agent):
        for _ in range(2):
            with pytest.raises(InfrastructureError):
                judge_pool.evaluate(task, kernel(tmp_path, "k"), Options())
    assert agent.heard == ["pause", "resume"] * 2


def test_what_does_not_compile_takes_no_turn(task: Task, tmp_path: Path) -> None:
    judge, agent = FakeEvaluator(), Workers()
    judge_pool = JudgePool([judge], Refusing())
    with judge_pool.attend(agent):
        evaluation = judge_pool.evaluate(task, kernel(tmp_path, "k"), Options())
    assert evaluation.status is Status.COMPILE_ERROR and judge.seen == [] and agent.heard == []


def test_a_judge_that_has_nothing_to_do_is_told_what_comes(task: Task, tmp_path: Path) -> None:
    """And what it was told of goes to it, while another one is free."""
    judges = [Told(), Told()]
    judge_pool = JudgePool(judges, Compiling())
    for seeds, word in enumerate(("one", "two", "three"), 1):
        judge_pool.evaluate(task, kernel(tmp_path, word), Options(seeds=seeds))  # no judge knows the baseline by these
    assert [len(judge.told) for judge in judges] == [2, 1]
    assert [[text for _, text, _ in judge.seen] for judge in judges] == [["# one", "# three"], ["# two"]]
    for judge in judges:
        assert judge.told == judge.came


def test_a_judge_that_cannot_be_told_is_asked_all_the_same(
    task: Task, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judge = Told(fails=True)
    judge_pool = JudgePool([judge], Compiling())
    for _ in range(2):
        assert judge_pool.evaluate(task, kernel(tmp_path, "one"), Options()).status is Status.PASSED
    assert judge.told == judge.came and "could not be told" in caplog.text


def test_a_judge_that_expects_a_candidate_is_told_of_no_other(task: Task, tmp_path: Path) -> None:
    judge, compiling = Told(), Compiling()
    judge_pool = JudgePool([judge], compiling)
    judge_pool._tell(task, Options(), None, expected_folder(tmp_path))
    judge_pool.evaluate(task, kernel(tmp_path, "two"), Options())
    assert len(judge.told) == 1
    judge_pool._forget(judge)
    judge_pool.evaluate(task, kernel(tmp_path, "three"), Options())
    assert judge.told[1:] == judge.came[1:]


def expected_folder(place: Path) -> Path:
    for split in ("seen", "heldout"):
        (place / "compiled" / split).mkdir(parents=True)
    return place / "compiled"


def test_a_judge_that_is_at_work_is_told_nothing(task: Task, tmp_path: Path) -> None:
    judge, compiling = Told(), Compiling()
    judge_pool = JudgePool([judge], compiling)
    with judge_pool._turn(None, None, Owner()):  # somebody else's
        thread = threading.Thread(target=judge_pool.evaluate, args=(task, kernel(tmp_path, "one"), Options()))
        thread.start()
        assert compiling.asked.wait(10)
    thread.join(10)
    assert judge.told == [] and len(judge.came) == 1


def test_giving_up_ends_agents_and_whoever_waits(task: Task, tmp_path: Path) -> None:
    judge, agent, errors = Slow(environment=HERE), Workers(), []
    judge_pool = JudgePool([judge])

    def ask() -> None:
        try:
            judge_pool.evaluate(task, kernel(tmp_path, "k"), Options())
        except InfrastructureError as problem:
            errors.append(str(problem))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    with pytest.raises(InfrastructureError, match="given up"), judge_pool.attend(agent):
        for thread in threads:
            thread.start()
        assert judge.entered.wait(10)
        time.sleep(0.05)
        judge_pool.cancel()
        for thread in threads:
            thread.join(10)
    assert sorted(errors) == ["the device fell over", "the run was given up", "the run was given up"]
    assert "kill" in agent.heard
    with pytest.raises(InfrastructureError, match="given up"):
        judge_pool.evaluate(task, kernel(tmp_path, "k"), Options())


@pytest.mark.parametrize("pressed", [True, False])
def test_a_judge_that_was_killed_has_not_failed(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, pressed: bool
) -> None:
    """Ctrl-C kills it: its candidate is neither evaluated again nor named as what it failed with."""
    asked = []

    def ask(judge: JudgeClient, *_: object) -> Evaluation:
        asked.append(judge)
        if pressed:
            judge._killed = True  # as `kill`, without a process
        raise InfrastructureError("the judge ended (exit code -9)")

    for name in ("_start", "close", "kill"):
        monkeypatch.setattr(JudgeClient, name, lambda judge: None)
    monkeypatch.setattr(JudgeClient, "_ask", ask)
    with started("cpu") as pool, pytest.raises(InfrastructureError) as failure:
        pool.evaluate(task, kernel(tmp_path, "k"), Options())
    assert (len(asked) == 1) is pressed is ("was closed" in str(failure.value)) is (caplog.records == [])


def test_an_interrupted_run_kills_its_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr(JudgeClient, "_start", lambda judge: events.append("start"))
    monkeypatch.setattr(JudgeClient, "kill", lambda judge: events.append("kill"))
    monkeypatch.setattr(JudgeClient, "close", lambda judge: events.append("close"))
    with pytest.raises(KeyboardInterrupt), started("cpu"):
        raise KeyboardInterrupt
    with started("cpu"):
        pass
    assert events == ["start", "kill", "close", "start", "close"]


def test_a_judge_elsewhere_stops_nobody_here(task: Task, tmp_path: Path) -> None:
    here, agent = FakeEvaluator(), Workers()
    there = Slow(shares_machine=False)
    judge_pool = JudgePool([there, here])
    with judge_pool.attend(agent):
        measuring = threading.Thread(target=judge_pool.evaluate, args=(task, kernel(tmp_path, "k"), Options()))
        measuring.start()
        assert there.entered.wait(10) and agent.heard == []
        judge_pool.evaluate(task, kernel(tmp_path, "l"), Options())
        assert agent.heard == ["pause", "resume"]
        there.go.set()
        measuring.join(10)
    assert agent.heard == ["pause", "resume"]

"""One trial's service: what counts, what is limited, and which kernel is handed in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.results.effort import Effort
from arena.results.record import Evaluation
from arena.results.session import KERNEL_LIMIT_BYTES, Limits
from arena.results.verdict import Status
from arena.runs.service.judge_pool import JudgePool
from arena.runs.service.trial import TrialService
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from arena.task.options import Options
from tests.fakes import FakeEvaluator, Timing
from tests.task.corpus.folders import write_task

SPEEDS = {"slow": 0.5, "same": 1.0, "fast": 2.0, "faster": 4.0}


class Untimed(FakeEvaluator):
    """Times nothing, as it is told."""

    def finish(self, found: Evaluation, text: str) -> Evaluation:
        return replace(found, effort=self.options[-1].effort)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(write_task(tmp_path / "tasks"))


def service(task: Task, evaluations: int = 10) -> tuple[TrialService, Timing]:
    judge = Timing(speeds=SPEEDS)
    return TrialService(task, Options(), JudgePool([judge]), Limits(evaluations=evaluations)), judge


def test_an_evaluation_is_of_seen_cases_only_and_is_counted(task: Task) -> None:
    place, judge = service(task)
    answer = place.evaluate(b"fast")
    assert answer.evaluated is not None
    assert (answer.evaluated.number, answer.evaluated.speedup, answer.evaluated.status) == (1, 2.0, Status.PASSED)
    assert [options.heldout for options in judge.options] == [False]
    wrong = place.evaluate(b"WRONG").evaluated
    assert wrong is not None and (wrong.number, wrong.speedup, wrong.status) == (2, None, Status.WRONG_RESULT)


def test_without_timings_the_first_kernel_that_passed_is_the_best(task: Task) -> None:
    options = Options(effort=Effort.CORRECTNESS)
    place = TrialService(task, options, JudgePool([Untimed()]), Limits(evaluations=9))
    answer = place.evaluate(b"right")
    assert answer.evaluated is not None and answer.evaluated.speedup is None
    assert answer.text.startswith("passed: every seen case is right; nothing was timed")
    place.evaluate(b"right too")
    place.evaluate(b"WRONG")
    assert place.choose(None)[0] == b"right"
    assert place.choose(b"right too") == (b"right too", "")
    assert place.choose(b"WRONG")[0] == b"right"


def test_the_limit_is_enforced(task: Task) -> None:
    place, judge = service(task, evaluations=2)
    answers = [place.evaluate(b"fast") for _ in range(4)]
    assert [answer.evaluated is not None for answer in answers] == [True, True, False, False]
    assert "all 2 evaluations are used up" in answers[3].text and len(judge.seen) == 2


def test_a_huge_kernel_is_refused_and_not_counted(task: Task) -> None:
    place, _ = service(task, evaluations=1)
    assert place.evaluate(b"#" * (KERNEL_LIMIT_BYTES + 1)).evaluated is None
    assert place.evaluate(b"same").evaluated is not None


def test_a_harness_that_fails_is_not_counted(task: Task) -> None:
    place, judge = service(task, evaluations=1)
    judge.failing.add("scale")
    answer = place.evaluate(b"same")
    assert answer.evaluated is None and "not counted: the device fell over" in answer.text
    judge.failing.clear()
    assert place.evaluate(b"same").evaluated is not None


@pytest.mark.parametrize(
    ("asked", "left", "chosen", "says"),
    [
        ((), None, None, "no kernel.py was left, and none had passed"),
        ((), b"slow", b"slow", ""),
        ((b"fast",), b"fast", b"fast", ""),
        ((b"fast",), None, b"fast", "no kernel.py was left: evaluation 1 counts"),
        ((b"same", b"fast", b"slow"), b"slow", b"fast", "is slower (0.50x): evaluation 2 counts (2.00x)"),
        ((b"fast", b"WRONG"), b"WRONG", b"fast", "did not pass: evaluation 1 counts"),
        ((b"fast",), b"faster", b"faster", ""),
        ((b"fast",), b"WRONG", b"fast", "did not pass: evaluation 1"),
        ((b"WRONG",), b"WRONG", b"WRONG", ""),
    ],
)
def test_which_kernel_counts(
    task: Task, asked: tuple[bytes, ...], left: bytes | None, chosen: bytes | None, says: str
) -> None:
    place, _ = service(task, evaluations=len(asked))
    for one in asked:
        place.evaluate(one)
    kernel, why = place.choose(left)
    assert kernel == chosen and says in why and bool(says) is bool(why)

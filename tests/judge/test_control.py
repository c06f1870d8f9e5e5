"""Who is to blame where judges fail: tried twice, then the baseline decides. With judges told when to fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from arena.errors import DeviceMemoryFull, InfrastructureError, JudgeUnavailable
from arena.judge.process import control
from arena.judge.process.control import Request
from arena.judge.process.messages import HarnessFailed, Progress
from arena.results.environment import Environment
from arena.results.messages import message
from arena.results.record import Evaluation
from arena.results.reward import reward
from arena.results.verdict import Stage, Status, Verdict
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options
from tests.fakes import HERE

RMS_NORM = TASKS / "triton2triton/normalization/rms_norm"
SILU = TASKS / "torch2hip/modules/silu"
START = (RMS_NORM / "kernel.py").read_text(encoding="utf-8")


@dataclass
class Failing:
    """Fails so many times with each text; passes every other, but for the baseline where it is told otherwise."""

    failures: dict[str, int]
    baseline: Status = Status.PASSED
    problem: InfrastructureError = field(default_factory=lambda: InfrastructureError("the judge ended"))
    environment: Environment = HERE
    asked: list[str] = field(default_factory=list)
    options: list[Options] = field(default_factory=list)

    def evaluate_once(self, request: Request, on_progress: Callable[[Progress], None]) -> Evaluation:
        text = request.candidate.read_text(encoding="utf-8")
        self.asked.append("baseline" if text == START else text)
        self.options.append(request.options)
        on_progress(Progress(Stage.CORRECTNESS, 0, 1))
        self._fail(self.asked[-1])
        status = self.baseline if text == START else Status.PASSED
        return Evaluation("t", "triton2triton", "h", "c", HERE, (Verdict(Stage.CORRECTNESS, status, "so"),), ())

    def check_baseline(self, task: Path, heldout: Path | None, options: Options) -> dict[str, str]:
        self.asked.append("proof")
        self._fail("proof")
        return {"heldout-01": self.baseline, "heldout-02": "passed"}

    def _fail(self, text: str) -> None:
        self.failures[text] = self.failures.get(text, 0) - 1
        if self.failures[text] >= 0:
            raise self.problem


def evaluated(judge: Failing, folder: Path, task: Path = RMS_NORM) -> tuple[Evaluation, list[Progress]]:
    candidate, progress = folder / "kernel", list[Progress]()
    candidate.write_text("hostile", encoding="utf-8")
    request = Request(task, candidate, Options(profile=True, max_work=2e4))
    return control.evaluated(judge, request, progress.append), progress


def test_a_judge_that_fails_once_is_nobodys_fault(tmp_path: Path) -> None:
    judge = Failing({"hostile": 1})
    assert evaluated(judge, tmp_path)[0].status is Status.PASSED
    assert judge.asked == ["hostile"] * 2


def test_a_full_device_is_nobodys_fault(tmp_path: Path) -> None:
    try:
        raise type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory")
    except RuntimeError as full:
        judge = Failing({"hostile": 9}, problem=HarnessFailed.of(full).error())
    with pytest.raises(DeviceMemoryFull, match=r"out of memory[\s\S]*\[judge_out_of_memory\]"):
        evaluated(judge, tmp_path)
    assert judge.asked == ["hostile"] * 2


@pytest.mark.parametrize("baseline", [Status.PASSED, Status.TIMING_MISMATCH])
def test_a_candidate_with_which_two_judges_fail_has_failed(tmp_path: Path, baseline: Status) -> None:
    judge = Failing({"hostile": 9}, baseline)
    evaluation, progress = evaluated(judge, tmp_path)
    assert judge.asked == ["hostile", "hostile", "baseline"] and len(progress) == 2
    assert [options.profile for options in judge.options] == [True, True, False]
    assert evaluation.failure is not None and evaluation.failure.detail == message("judge_failed_twice")
    assert evaluation.status is Status.CRASH and reward(evaluation.status, None) < 0
    task = load_task(RMS_NORM)
    assert evaluation.task_hash == task.content_hash and len(evaluation.candidate_hash) == 64
    assert {case.candidate for case in evaluation.cases} == {Status.NOT_RUN} and len(evaluation.cases) >= 4


@pytest.mark.parametrize(
    "judge",
    [Failing({"hostile": 9, "baseline": 9}), Failing({"hostile": 9}, Status.CRASH)],
    ids=["the control has no verdict", "the baseline fails"],
)
def test_where_the_baseline_fails_too_it_is_the_harness(tmp_path: Path, judge: Failing) -> None:
    with pytest.raises(InfrastructureError, match="the judge ended"):
        evaluated(judge, tmp_path)
    assert judge.asked == ["hostile", "hostile", "baseline"]


def test_without_a_starting_kernel_the_reference_is_the_control(tmp_path: Path) -> None:
    judge = Failing({"hostile": 9})
    assert evaluated(judge, tmp_path, SILU)[0].status is Status.CRASH
    assert judge.asked == ["hostile", "hostile", "proof"]
    with pytest.raises(InfrastructureError):
        evaluated(Failing({"hostile": 9}, Status.WRONG_RESULT), tmp_path, SILU)


def test_where_no_judge_starts_nobody_is_tried_again(tmp_path: Path) -> None:
    judge = Failing({"hostile": 9}, problem=JudgeUnavailable("no cuda device here"))
    with pytest.raises(JudgeUnavailable):
        evaluated(judge, tmp_path)
    assert judge.asked == ["hostile"]

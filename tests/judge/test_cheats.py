"""Candidates that try to look better than they are, each with the status it must get, on the CPU and on a GPU.

The expected status stands in the header of each file under `tests/cheats/<task>/` (`tests/exhibits.py` reads it). What
they are all built around, a plain right kernel, is `_kernel.py` or `_kernel.hip`, put in place of the line `<kernel>`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from arena.corpus.task_folder import TASKS
from arena.judge.client import JudgeClient
from arena.judge.messages import Options
from arena.model.record import Evaluation
from arena.model.verdict import Stage, Status
from tests.candidates import TASK_OF, assembled, name
from tests.exhibits import Exhibit, exhibits

OPTIONS = Options(heldout=False, seeds=3, call_timeout_s=6.0, timing_budget_s=0.05)
_CPU_TRIES = 3  # other tests share the cores: a mismatch of timings may be their doing
CPU_OPTIONS = structs.replace(OPTIONS, max_work=5e4)
GPU_OPTIONS = structs.replace(OPTIONS, max_work=1e7)


def shown(platform: str) -> list[object]:
    """The exhibits as parameters: those not caught yet must fail, or the corpus is out of date."""
    found = []
    for exhibit in exhibits():
        marks = []
        if platform in exhibit.meaningless:
            marks.append(pytest.mark.skip(reason=exhibit.meaningless[platform]))
        elif platform in exhibit.uncaught:
            marks.append(pytest.mark.xfail(reason=exhibit.uncaught[platform], strict=True))
        found.append(pytest.param(exhibit, id=name(exhibit.path), marks=marks))
    return list(found)


def evaluate(judge: JudgeClient, exhibit: Exhibit, folder: Path, options: Options) -> Evaluation:
    """One exhibit through the gates, with held-out cases where it is about these."""
    task = TASKS / TASK_OF[exhibit.path.parent.name]
    return judge.evaluate(task, assembled(exhibit.path, folder), structs.replace(options, heldout=exhibit.heldout))


def outcome(evaluation: Evaluation) -> Status:
    """What the last gate said, that of the held-out cases included."""
    return evaluation.verdicts[-1].status


def check(evaluation: Evaluation, wanted: tuple[Status, ...]) -> None:
    """The status is as wanted, is explained, and no case that failed has a speedup."""
    why = [(verdict.stage, verdict.detail) for verdict in evaluation.verdicts]
    assert outcome(evaluation) in wanted, why
    if outcome(evaluation) is not Status.PASSED:
        assert evaluation.verdicts[-1].detail, "a failure says why"
    if outcome(evaluation) is Status.COMPILE_ERROR:
        assert evaluation.verdicts[-1].stage is Stage.COMPILE
    assert all(case.speedup is None for case in evaluation.cases if case.candidate is not Status.PASSED)


@pytest.mark.system
@pytest.mark.parametrize("exhibit", shown("CPU"))
def test_on_cpu(cpu_judge: JudgeClient, exhibit: Exhibit, tmp_path: Path) -> None:
    wanted, busy = exhibit.expected["CPU"], Status.TIMING_MISMATCH
    for _ in range(_CPU_TRIES):
        evaluation = evaluate(cpu_judge, exhibit, tmp_path, CPU_OPTIONS)
        if outcome(evaluation) is not busy or busy in wanted:
            break
    check(evaluation, wanted)


@pytest.mark.gpu
@pytest.mark.parametrize("exhibit", shown("GPU"))
def test_on_gpu(gpu_judge: JudgeClient, exhibit: Exhibit, tmp_path: Path) -> None:
    check(evaluate(gpu_judge, exhibit, tmp_path, GPU_OPTIONS), exhibit.expected["GPU"])

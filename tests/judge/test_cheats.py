"""Candidates that try to look better than they are, each with the status it must get, on the CPU and on a GPU.

The expected status stands in the first line of each file under `tests/cheats/<task>/`. What they are all built around,
a plain right kernel, is `_kernel.py` or `_kernel.hip`, put in place of the line `<kernel>`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import structs

from arena.judge.client import JudgeClient
from arena.judge.messages import Options
from arena.model.record import Evaluation
from arena.model.verdict import Stage, Status
from arena.taskfile.corpus import TASKS
from tests.candidates import TASK_OF, assembled, candidates, name

FILES = candidates("cheats")
OPTIONS = Options(heldout=False, seeds=3, call_timeout_s=6.0, timing_budget_s=0.05)


def expected(path: Path, *, emulated: bool) -> Status:
    """The status in the first line: `expect: crash`, or `expect: passed, emulated: wave_size_dependent`."""
    found = re.search(r"expect: (\w+)(?:, emulated: (\w+))?", path.read_text(encoding="utf-8").splitlines()[0])
    assert found, f"{path} does not say what to expect"
    return Status((found.group(2) if emulated else None) or found.group(1))


def evaluate(judge: JudgeClient, path: Path, folder: Path, options: Options) -> Evaluation:
    return judge.evaluate(TASKS / TASK_OF[path.parent.name], assembled(path, folder), options)


def check(evaluation: Evaluation, path: Path) -> None:
    wanted = expected(path, emulated=evaluation.environment.device.emulated)
    why = [(verdict.stage, verdict.detail) for verdict in evaluation.verdicts]
    assert evaluation.status is wanted, why
    if wanted is not Status.PASSED:
        assert evaluation.verdicts[-1].detail, "a failure says why"
    if wanted is Status.COMPILE_ERROR:
        assert evaluation.verdicts[-1].stage is Stage.COMPILE
    assert all(case.speedup is None for case in evaluation.cases if case.candidate is not Status.PASSED)


@pytest.mark.system
@pytest.mark.parametrize("path", FILES, ids=name)
def test_on_cpu(cpu_judge: JudgeClient, path: Path, tmp_path: Path) -> None:
    check(evaluate(cpu_judge, path, tmp_path, structs.replace(OPTIONS, max_work=5e4)), path)


@pytest.mark.gpu
@pytest.mark.parametrize("path", FILES, ids=name)
def test_on_gpu(gpu_judge: JudgeClient, path: Path, tmp_path: Path) -> None:
    check(evaluate(gpu_judge, path, tmp_path, structs.replace(OPTIONS, max_work=1e7)), path)

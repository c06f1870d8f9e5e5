"""Tasks that give a PyTorch function and ask for Triton: loaded, checked, evaluated and described."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.checks.tasks.run import CheckPlan, check_tasks
from arena.judge.process.client import JudgeClient
from arena.results.effort import Effort
from arena.results.session import Limits
from arena.results.verdict import Status
from arena.runs.service.task_text import task_text
from arena.task.corpus.corpora import load_corpus
from arena.task.corpus.task_folder import load_task
from arena.task.definition import TaskType
from arena.task.options import Options
from tests.checks.tasks.affine import HELDOUT, KERNEL, REFERENCE, SEEN, TASK
from tests.runs.service.examples import CPU, environment


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "torch2triton/suite/affine"
    made.mkdir(parents=True)
    files = {"task.yaml": TASK, "seen.yaml": SEEN, "heldout.yaml": HELDOUT, "reference.py": REFERENCE}
    for name, text in {**files, "expert.py": KERNEL}.items():
        (made / name).write_text(text, encoding="utf-8")
    return made


@pytest.mark.slow
def test_a_task_passes_its_check(folder: Path) -> None:
    corpus = {task.id: task for task in load_corpus(folder.parents[2])}
    plan = CheckPlan("cpu", Options(seeds=2, targets=("sm_90",)))
    (check,) = check_tasks(corpus, corpus, plan, lambda one: None)
    assert check.task == "torch2triton/suite/affine"
    assert not check.failed
    assert {"correct", "margin", "builds for sm_90"} <= {item.name for item in check.items}


def test_a_triton_kernel_is_judged_against_pytorch(folder: Path, cpu_judge: JudgeClient) -> None:
    task = load_task(folder)
    assert task.task_type is TaskType.TORCH2TRITON and task.baseline_kernel is None
    wrong = folder / "kernel.py"
    wrong.write_text(KERNEL.replace("x * gain + offset", "x * gain"), encoding="utf-8")
    options = Options(effort=Effort.CORRECTNESS, seeds=1)
    verdicts = [cpu_judge.evaluate(folder, kernel, options).status for kernel in (folder / "expert.py", wrong)]
    assert verdicts == [Status.PASSED, Status.WRONG_RESULT]


def test_the_agent_is_told_what_is_given(folder: Path) -> None:
    text = task_text(load_task(folder), environment(CPU), Limits())
    assert "Write a Triton kernel, `kernel.py`, that computes what `reference.py` does" in text
    assert "The baseline is PyTorch eager" in text and "`kernel.py`: to be written" in text

"""The example of matrix units: right on the CPU at both wave sizes; its mutants are rejected."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from arena.checks.tasks.mutants.base import Fault
from arena.checks.tasks.mutants.hip import derive
from arena.checks.tasks.run import CheckPlan, check_tasks
from arena.judge.process.client import JudgeClient
from arena.platforms.toolchains.hip_compilers import find
from arena.results.effort import Effort
from arena.results.verdict import Status
from arena.task.corpus.corpora import load_corpus
from arena.task.options import Options

ROOT = Path(__file__).parents[3]
TASK = ROOT / "tasks" / "hip2hip" / "modules" / "simple_matmul"
EXAMPLE = (ROOT / "examples" / "matrix_units" / "simple_matmul.hip").read_text(encoding="utf-8")
# A tile or a step more than there are, rows that are read and not stored, and blocks that find nothing to do.
HARMLESS = {"< → <=", "- → +", "/ → *"}
pytestmark = pytest.mark.skipif(find()[0].missing, reason="no C++ compiler on this machine")


def test_the_example_is_right(cpu_judge: JudgeClient, tmp_path: Path) -> None:
    candidate, wrong = tmp_path / "kernel.hip", tmp_path / "wrong.hip"
    candidate.write_text(EXAMPLE, encoding="utf-8")
    wrong.write_text(EXAMPLE.replace("value *= 2.0f", "value *= 2.1f"), encoding="utf-8")
    options = Options(effort=Effort.CORRECTNESS, seeds=1, max_work=2e5)
    evaluations = [cpu_judge.evaluate(TASK, file, options) for file in (candidate, wrong)]
    assert [one.status for one in evaluations] == [Status.PASSED, Status.WRONG_RESULT]


def test_mutants_confuse_layouts_and_bounds() -> None:
    changes = {mutant.change for mutant in derive(EXAMPLE) if mutant.fault is Fault.SWAP}
    assert "row_major → column_major" in changes
    bounds = EXAMPLE.replace("M - row, K - k", "rows, columns")
    assert "rows, columns → columns, rows" in {mutant.change for mutant in derive(bounds)}


@pytest.mark.slow
def test_mutants_of_the_example_are_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "hip2hip" / "modules" / "simple_matmul"
    shutil.copytree(TASK, folder)
    (folder / "kernel.hip").write_text(EXAMPLE, encoding="utf-8")
    corpus = {task.id: task for task in load_corpus(tmp_path)}
    plan = CheckPlan("cpu", Options(seeds=2), most_mutants=40)
    (check,) = check_tasks(corpus, corpus, plan, lambda one: None)
    fates = [fate for fate in check.mutants if fate.line and fate.built]
    assert len(fates) >= 20
    assert {fate.change for fate in fates if fate.status is Status.PASSED} <= HARMLESS
    assert "row_major → column_major" in {fate.change for fate in fates}

"""The page about the tasks: numbers as kept, dashes for what was never seen of this version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.corpus.task_folder import load_task
from arena.errors import UsageError
from arena.model.check import CheckItem, CheckOutcome, MutantFate, Speed, TaskCheck
from arena.model.task import Task
from arena.model.verdict import Status
from arena.reporting.task_quality import gather, render
from arena.runs import records
from tests.corpus.folders import write_task


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(write_task(tmp_path / "tasks"))


def keep(folder: Path, kind: str, check: TaskCheck) -> None:
    records.write(folder / kind / f"{check.task.replace('/', '.')}.json", check)


def row_of(page: str, task: Task) -> list[str]:
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {task.suite}/{task.name} ")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_holds_what_was_kept(task: Task, tmp_path: Path) -> None:
    kept = TaskCheck(task.id, task.content_hash, "cpu", ())
    fates = [
        MutantFate("1:1 constant", 1, "1 → 2", Status.WRONG_RESULT),
        MutantFate("2:1 bound", 2, "< → <=", Status.PASSED),
        MutantFate("3:1 mask", 3, "dropped", Status.PASSED, equivalent="nothing lies beyond"),
        MutantFate("4:1 mask 2", 4, "dropped", Status.COMPILE_ERROR),
    ]
    keep(tmp_path, "cpu/mutants", replace(kept, mutants=tuple(fates)))
    speeds = (Speed("starting", "M=8", 0.5, 0.1, 0.001), Speed("expert", "M=8", 0.125, 0.1, 0.001))
    items = (
        CheckItem("headroom", CheckOutcome.DECLARED, "a copy leaves little"),
        CheckItem("pace", CheckOutcome.PASSED),
    )
    keep(tmp_path, "cuda/items", replace(kept, items=items, aa_worst=0.0041, speeds=speeds, device="a GPU"))
    page = render(gather([task], tmp_path))
    counts = [str(len(task.seen)), str(len(task.heldout))]
    assert row_of(page, task)[2:] == [*counts, "1 of 2", "50 %", "1", "0.41 %", "500 µs", "0.200", "0.800", "5.0"]
    assert "1 of 2 mutants rejected (50.0 %)" in page and "a GPU" in page
    assert f"| {task.id} | headroom | a copy leaves little |" in page
    assert "| bound | 0 of 1 | 0 of 1 | 0.0 % |" in page
    assert "| constant | 1 of 1 | 1 of 1 | 100.0 % |" in page
    assert f"| {task.id} | 2:1 bound | < → <= |" in page
    assert f"| {task.task_type}/{task.suite} | 1 | 1 of 2 | 50.0 % | 0.41 % |" in page


def test_checks_of_another_version_do_not_count(task: Task, tmp_path: Path) -> None:
    fate = MutantFate("1:1 constant", 1, "1 → 2", Status.WRONG_RESULT)
    keep(tmp_path, "cpu/mutants", TaskCheck(task.id, "older", "cpu", (), mutants=(fate,)))
    assert set(row_of(render(gather([task], tmp_path)), task)[4:]) == {"–", "0"}


def test_without_checks_it_is_said_how_to_make_some(task: Task, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="arena tasks check"):
        gather([task], tmp_path / "nothing")

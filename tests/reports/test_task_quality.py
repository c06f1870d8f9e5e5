"""The page about the tasks: numbers as kept, dashes for what was never seen of this version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.errors import UsageError
from arena.reports.task_quality import gather, render
from arena.results.check import CheckItem, CheckOutcome, MutantFate, TaskCheck
from arena.results.record import CaseResult
from arena.results.verdict import Status
from arena.runs import records
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from tests.reports import builders
from tests.task.corpus.folders import write_task


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
    items = (
        CheckItem("headroom", CheckOutcome.DECLARED, "a copy leaves little"),
        CheckItem("pace", CheckOutcome.PASSED),
    )
    keep(tmp_path, "cpu/items", replace(kept, items=items))
    own = [timed(0.9959, 0.5), timed(1.0, 0.03), timed(1.3, 0.4, noisy=True), timed(1.2, 0.019)]
    keep_run(tmp_path / "run", task, own, [timed(4.0, 0.5), timed(9.0, 0.03)])
    page = render(*gather([task], tmp_path, tmp_path / "run"))
    counts = [str(len(task.seen)), str(len(task.heldout))]
    assert row_of(page, task)[2:] == [*counts, "1 of 2", "50 %", "1", "0.41 %", "500 µs", "0.199", "0.800"]
    assert "1 of 2 mutants rejected (50.0 %)" in page and f"Timed on: {builders.GPU.name}." in page
    assert f"| {task.id} | headroom | a copy leaves little |" in page
    assert "| bound | 0 of 1 | 0 of 1 | 0.0 % |" in page
    assert "| constant | 1 of 1 | 1 of 1 | 100.0 % |" in page
    assert f"| {task.id} | 2:1 bound | < → <= |" in page
    assert f"| {task.task_type}/{task.suite} | 1 | 1 of 2 | 50.0 % | 0.41 % |" in page


def test_unstable_forms_are_counted_by_their_items(task: Task, tmp_path: Path) -> None:
    names = {"unstable tanh": CheckOutcome.PASSED, "unstable square": CheckOutcome.DECLARED, "unstable exp": "failed"}
    items = tuple(CheckItem(name, CheckOutcome(outcome)) for name, outcome in names.items())
    keep(tmp_path, "cpu/items", TaskCheck(task.id, task.content_hash, "cpu", items))
    page = render(*gather([task], tmp_path))
    assert "| tanh | 1 | 1 | 0 | 0 |\n\n## Suites\n" in page and "| square | 1 | 0 | 1 | 0 |\n" in page
    assert "| exp | 1 | 0 | 0 | 1 |\n" in page
    keep(tmp_path, "cpu/items", TaskCheck(task.id, task.content_hash, "cpu", ()))
    assert "Unstable forms" not in render(*gather([task], tmp_path))


def timed(speedup: float, baseline_ms: float, *, noisy: bool = False) -> CaseResult:
    return builders.case(f"at-{baseline_ms}", speedup, baseline_ms=baseline_ms, noisy=noisy, roofline_ms=0.1)


def keep_run(folder: Path, task: Task, own: list[CaseResult], expert: list[CaseResult], version: str = "") -> None:
    trials = [
        builders.trial(task.id, agent=agent, cases=cases, task_hash=version or task.content_hash)
        for agent, cases in (("noop", own), ("expert", expert))
    ]
    run = builders.run(trials)
    records.write_head(folder, run.info)
    for trial in run.trials:
        records.write_trial(folder, trial)


def test_what_is_of_another_version_does_not_count(task: Task, tmp_path: Path) -> None:
    fate = MutantFate("1:1 constant", 1, "1 → 2", Status.WRONG_RESULT)
    keep(tmp_path, "cpu/mutants", TaskCheck(task.id, "older", "cpu", (), mutants=(fate,)))
    keep_run(tmp_path / "run", task, [timed(1.1, 0.5)], [timed(4.0, 0.5)], version="older")
    assert set(row_of(render(*gather([task], tmp_path, tmp_path / "run")), task)[4:]) == {"–", "0"}


def test_where_pytorch_is_the_baseline_its_latency_is_that_beside_the_expert(task: Task, tmp_path: Path) -> None:
    keep(tmp_path, "cpu/mutants", TaskCheck(task.id, task.content_hash, "cpu", ()))
    keep_run(tmp_path / "run", task, [], [timed(4.0, 0.5)])
    rows, device = gather([task], tmp_path, tmp_path / "run")
    assert row_of(render(rows, device), task)[7:] == ["–", "500 µs", "–", "0.800"]
    assert "Timed on" not in render(*gather([task], tmp_path))


def test_without_checks_it_is_said_how_to_make_some(task: Task, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="arena tasks check"):
        gather([task], tmp_path / "nothing")

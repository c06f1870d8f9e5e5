"""What was seen of a task holds after cases were added, and no longer after anything else has changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from arena.reports.task_versions import all_holds, held_cases, read_versions, version_of, written
from arena.results.record import CaseResult, Split
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Task

NAME = "triton2triton/normalization/rms_norm"
ADDED = "- {kind: edge, M: 1, N: 77, dtype: float32}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of a task."""
    copy = tmp_path / NAME
    shutil.copytree(TASKS / NAME, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def changed(folder: Path, file: str, text: str) -> Task:
    (folder / file).write_text(text, encoding="utf-8")
    return load_task(folder)


def test_all_holds_after_a_case_was_added(folder: Path) -> None:
    old = version_of(load_task(folder))
    heldout = (folder / "heldout.yaml").read_text(encoding="utf-8")
    new = version_of(changed(folder, "heldout.yaml", heldout + ADDED))
    assert all_holds(old, new)
    assert not all_holds(new, old), "a case is gone"
    assert not all_holds(None, new)


@pytest.mark.parametrize("file", ["reference.py", "kernel.py", "expert.py"])
def test_nothing_holds_after_code_has_changed(folder: Path, file: str) -> None:
    old = version_of(load_task(folder))
    text = (folder / file).read_text(encoding="utf-8") if (folder / file).is_file() else ""
    task = changed(folder, file, text + "\n# another\n")
    assert not all_holds(old, version_of(task))
    assert held_cases(old, task, results(task)) == ()


def test_all_holds_after_words_domains_and_exceptions_have_changed(folder: Path) -> None:
    old = version_of(load_task(folder))
    text = (folder / "task.yaml").read_text(encoding="utf-8")
    eps = "value: 1.0e-6, domain: [0, .inf]"
    assert eps in text
    said = text.replace(eps, "value: 1.0e-6, domain: [0, 4], doc: added to the mean square")
    excused = f"{said}exceptions: {{margin: as close as its siblings}}\n"
    assert all_holds(old, version_of(changed(folder, "task.yaml", excused)))
    other = version_of(changed(folder, "task.yaml", text.replace(eps, "value: 1.0e-5, domain: [0, .inf]")))
    assert not all_holds(old, other)


def test_only_cases_that_are_still_timed_hold(folder: Path) -> None:
    before = load_task(folder)
    seen = (folder / "seen.yaml").read_text(encoding="utf-8")
    task = changed(folder, "seen.yaml", seen.replace(", timed: true", "", 1))
    held = held_cases(version_of(before), task, results(before))
    timed = [case.label for case in before.cases if case.timed]
    assert [case.label for case in held] == [label for label in timed if label != first_timed(before)]


def test_a_file_of_versions_is_read_as_it_was_written(folder: Path, tmp_path: Path) -> None:
    task = load_task(folder)
    file = tmp_path / "versions.json"
    file.write_bytes(written({task.content_hash: version_of(task)}))
    assert read_versions(file) == {task.content_hash: version_of(task)}


def first_timed(task: Task) -> str:
    return next(case.label for case in task.seen if case.timed)


def results(task: Task) -> tuple[CaseResult, ...]:
    return tuple(
        CaseResult(case.id, Split(case.split), case.kind, case.label, Status.PASSED, Status.PASSED)
        for case in task.cases
    )

"""A run folder from a stranger is read only where its files, names and sizes are those of a run."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from arena.errors import RecordError
from arena.results.record import Trial
from arena.runs import records, submission
from arena.runs.submission import check_files, read_submission, records_hash
from tests.reports.builders import case, run, simple, trial


def written(folder: Path, *trials: Trial, **changes: object) -> Path:
    made = run(trials) if trials else simple([2.0, None])
    records.write_head(folder, replace(made.info, **changes))  # type: ignore[arg-type]
    for one in made.trials:
        records.write_trial(folder, one)
    return folder


def test_an_ordinary_run_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "r1")
    assert len(read_submission(folder).trials) == 2
    before = records_hash(folder)
    (folder / "run.lock").write_text("1")
    assert records_hash(folder) == before
    kernel = folder / "submissions" / "alpha" / "kernel.py"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("x")
    assert records_hash(folder) != before


def test_links_and_special_files_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "r1")
    (tmp_path / "secret").write_text("secret")
    link = folder / "trials" / "alpha" / "link.json"
    link.symlink_to(tmp_path / "secret")
    with pytest.raises(RecordError, match=r"link\.json.*hand in the folder"):
        read_submission(folder)
    link.unlink()
    (folder / "submissions").symlink_to(tmp_path)
    with pytest.raises(RecordError, match="submissions"):
        read_submission(folder)
    (folder / "submissions").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(RecordError, match="pipe"):
        check_files(folder)
    (tmp_path / "other").symlink_to(folder)
    with pytest.raises(RecordError, match="not a folder"):
        check_files(tmp_path / "other")


def test_files_that_are_too_large_or_too_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "r1")
    with (folder / "run.json").open("ab") as file:
        file.truncate(17 << 20)
    with pytest.raises(RecordError, match="bytes, more than"):
        read_submission(folder)
    monkeypatch.setattr(submission, "_MOST_FILES", 1)
    with pytest.raises(RecordError, match=r"more than 1 files"):
        check_files(written(tmp_path / "r2"))


@pytest.mark.parametrize("name", ["../../up", "", ".hidden", "a/b", "<script>", "x" * 101, "‮gnp", "a\n"])
def test_names_that_are_no_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordError, match="is no name"):
        read_submission(written(tmp_path / "r1", agents=("alpha", name)))
    with pytest.raises(RecordError, match=r"belong|is no name"):
        read_submission(written(tmp_path / "r2", run=name))


@pytest.mark.parametrize("task", ["..", "a/b", "../../../etc", "triton2triton/../x", "a/b/c/d"])
def test_tasks_that_are_no_ids_are_refused(tmp_path: Path, task: str) -> None:
    made = simple([2.0])
    with pytest.raises(RecordError, match=r"no task id|is no name"):
        read_submission(written(tmp_path / "r1", *made.trials, tasks=(*made.info.tasks, task)))


def test_a_record_under_another_name_or_type_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "r1")
    first = next((folder / "trials" / "alpha").glob("*.json"))
    copy = first.with_name("twice.1.json")
    copy.write_bytes(first.read_bytes())
    with pytest.raises(RecordError, match=r"names of other trials.*twice"):
        read_submission(folder)
    strange = [replace(one, task_type="<b>") for one in simple([2.0]).trials]
    with pytest.raises(RecordError, match="no task type"):
        read_submission(written(tmp_path / "r2", *strange))
    kinds = [trial(cases=[replace(case(), kind="$x$")])]
    with pytest.raises(RecordError, match="no kind of case"):
        read_submission(written(tmp_path / "r3", *kinds))

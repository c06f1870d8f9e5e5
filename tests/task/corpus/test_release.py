"""Releases of the corpus: a changed task needs a new number, and a result says which release it belongs to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.cli.app import app
from arena.errors import FileError, UsageError
from arena.task.corpus import release as releases
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.release import FILE, CorpusRelease, corpus_of, read_release, tasks_hash
from arena.task.corpus.task_folder import TASKS, content_hash, load_task
from tests.task.corpus.folders import write_task


def test_the_shipped_tasks_are_those_of_their_release_or_in_development() -> None:
    raw = json.loads((TASKS / FILE).read_text())
    if raw["development"]:
        return
    release = read_release(TASKS / FILE)
    assert release is not None
    corpora = open_corpora()
    hashes = {name: corpora.load(name).content_hash for name in corpora.ids}
    assert release.differences(hashes) == (), "tasks changed: freeze them with `arena tasks release --number N`"


def frozen(tmp_path: Path) -> tuple[Path, Path]:
    folder = write_task(tmp_path / "tasks")
    typed = ["tasks", "release", "--tasks-dir", str(tmp_path / "tasks")]
    assert CliRunner().invoke(app, typed).exit_code == 1  # none yet
    done = CliRunner().invoke(app, [*typed, "--number", "3"])
    assert done.exit_code == 0, done.output
    return tmp_path / "tasks", folder


def test_a_release_is_frozen_once_and_a_change_is_seen(tmp_path: Path) -> None:
    root, folder = frozen(tmp_path)
    typed = ["tasks", "release", "--tasks-dir", str(root)]
    same = CliRunner().invoke(app, [*typed, "--number", "3"])
    assert isinstance(same.exception, UsageError) and "larger number" in str(same.exception)
    (folder / "reference.py").write_text((folder / "reference.py").read_text() + "# changed\n")
    changed = CliRunner().invoke(app, typed)
    assert changed.exit_code == 1 and "1 tasks, 1 differ" in changed.output
    again = CliRunner().invoke(app, [*typed, "--number", "4"])
    assert again.exit_code == 0 and "0 differ" in again.output


def test_a_task_belongs_to_the_release_that_holds_it_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, folder = frozen(tmp_path)
    task, release = load_task(folder), read_release(root / FILE)
    assert release is not None
    foreign = corpus_of({task.id: task})
    assert foreign.release is None and foreign.hash == tasks_hash({task.id: task.content_hash})
    monkeypatch.setattr(releases, "TASKS", root.resolve())
    monkeypatch.setattr(releases, "last_release", lambda: release)
    assert corpus_of({task.id: task}).release == 3
    assert str(corpus_of({task.id: task})) == f"release 3 ({release.hash[:12]})"
    other = CorpusRelease(3, development=False, tasks={task.id: "other"})
    monkeypatch.setattr(releases, "last_release", lambda: other)
    assert corpus_of({task.id: task}).release is None


def test_the_hash_does_not_depend_on_the_order_and_covers_every_task(tmp_path: Path) -> None:
    one = {"a": "1", "b": "2"}
    assert tasks_hash(one) == tasks_hash(dict(reversed(one.items()))) != tasks_hash({"a": "1"})
    assert len(content_hash(write_task(tmp_path))) == len(tasks_hash(one))


def test_a_malformed_file_names_the_command(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"number": "one"}')
    with pytest.raises(FileError, match="arena tasks release"):
        read_release(tmp_path / FILE)
    assert read_release(tmp_path / "none") is None

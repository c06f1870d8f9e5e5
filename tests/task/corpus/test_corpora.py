"""Several folders of tasks: found, chosen, and loaded one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.errors import FileError, UsageError
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.selection import select
from tests.task.corpus.folders import TASK, write_task

SCALE = "triton2triton/suite/scale"
TWICE = "triton2triton/suite/twice"


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    root = tmp_path / "tasks"
    write_task(root, SCALE)
    write_task(root, TWICE, task=TASK.replace("name: scale", "name: twice"))
    return root


def test_finding_a_task(tasks: Path) -> None:
    assert open_corpora([tasks]).find(SCALE).id == open_corpora().find(str(tasks / SCALE)).id == SCALE
    write_task(tasks, "torch2hip/suite/scale")
    with pytest.raises(UsageError, match=f"'scale' is the name of several tasks: {SCALE}, torch2hip/suite/scale"):
        open_corpora([tasks]).find("scale")
    with pytest.raises(UsageError, match="did you mean"):
        open_corpora([tasks]).find("scael")


def test_suggestions_can_be_typed(tasks: Path) -> None:
    """A bare name that several tasks share would be an error, too; no suggestion comes twice."""
    write_task(tasks, "torch2hip/suite/scale")
    ids = open_corpora([tasks]).ids
    for typed, expected in (("scael", [SCALE, "torch2hip/suite/scale"]), ("twise", ["twice"])):
        with pytest.raises(UsageError) as wrong:
            open_corpora([tasks]).find(typed)
        said = str(wrong.value).split("did you mean ")[1].removesuffix("?").split(", ")
        assert said[: len(expected)] == expected and len(set(said)) == len(said)
        assert all(len(select(ids, [name])) == 1 for name in said)


def test_a_task_folder_is_a_pattern(tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = write_task(
        tmp_path / "more", "triton2triton/other/thrice", task=TASK.replace("name: scale", "name: thrice")
    )
    monkeypatch.chdir(other)
    corpora, patterns = open_corpora([tasks]).including([".", "twice"])
    assert patterns == ("triton2triton/other/thrice", "twice")
    assert list(corpora.load_selected(patterns)) == [TWICE, "triton2triton/other/thrice"]


def test_two_folders_are_one_corpus(tasks: Path, tmp_path: Path) -> None:
    write_task(tmp_path / "more", "triton2triton/other/thrice", task=TASK.replace("name: scale", "name: thrice"))
    corpora = open_corpora([tasks, tmp_path / "more"])
    assert corpora.ids == (SCALE, TWICE, "triton2triton/other/thrice")
    assert set(corpora.load_selected(["twice,thrice"])) == {TWICE, "triton2triton/other/thrice"}


def test_the_same_id_in_two_folders_is_an_error(tasks: Path, tmp_path: Path) -> None:
    write_task(tmp_path / "more", SCALE)
    with pytest.raises(UsageError, match=f"{SCALE} is both in {tasks}.* and in {tmp_path}/more"):
        open_corpora([tasks, tmp_path / "more"])


def test_a_malformed_task_blocks_no_other(tasks: Path) -> None:
    (tasks / TWICE / "seen.yaml").write_text("[", encoding="utf-8")
    corpora = open_corpora([tasks])
    assert set(corpora.load_selected(["scale"])) == set(corpora.load_valid()) == {SCALE}
    with pytest.raises(FileError, match="not valid YAML"):
        corpora.load_selected(["*"])

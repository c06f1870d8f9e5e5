"""The tasks on disk: loaded whole, selected by glob, hashed by content."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.errors import FileError, UsageError
from arena.task.corpus.corpora import load_corpus, open_corpora
from arena.task.corpus.selection import select
from arena.task.corpus.task_folder import TASKS, content_hash, load_task
from arena.task.definition import TaskType
from tests.task.corpus.folders import TASK, write_task

IDS = (
    "hip2hip/modules/silu",
    "hip2hip/modules/softmax",
    "triton2triton/normalization/rms_norm",
    "triton2triton/normalization/layer_norm",
    "torch2hip/modules/softmax",
)


def test_the_real_corpus_loads() -> None:
    corpus = load_corpus()
    assert tuple(task.id for task in corpus) == open_corpora().ids
    assert len({task.id for task in corpus}) == len(corpus) > 0
    for task in corpus:
        assert len(task.seen) >= 5 and len(task.heldout) >= 5


def test_one_bad_file_fails_the_load(tmp_path: Path) -> None:
    write_task(tmp_path)
    assert len(load_corpus(tmp_path)) == 1
    other = write_task(tmp_path, "hip2hip/suite/other", task=TASK.replace("name: scale", "name: other"))
    with pytest.raises(FileError, match=r"kernel.hip: is missing"):
        load_corpus(tmp_path)
    (other / "task.yaml").unlink()
    with pytest.raises(FileError, match=r"task.yaml: is missing"):
        load_corpus(tmp_path)


def test_a_missing_root_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder of tasks"):
        open_corpora([tmp_path / "nowhere"])


@pytest.mark.parametrize("name", ["task.yaml", "seen.yaml", "heldout.yaml", "reference.py", "kernel.py", "expert.py"])
def test_the_hash_changes_with_every_defining_file(tmp_path: Path, name: str) -> None:
    folder = write_task(tmp_path)
    (folder / "expert.py").write_text("# better\n", encoding="utf-8")
    before = content_hash(folder)
    with (folder / name).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert content_hash(folder) != before


def test_the_hash_changes_with_the_shared_pieces_that_a_reference_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = tmp_path / "semantics"
    pieces.mkdir()
    for name, text in (("paged", "from arena.semantics.ragged import spans\n"), ("ragged", ""), ("philox", "")):
        (pieces / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr("arena.task.corpus.task_folder.SEMANTICS", pieces)
    folder = write_task(tmp_path)
    with (folder / "reference.py").open("a", encoding="utf-8") as file:
        file.write("from arena.semantics.paged import tokens_of\n")
    hashes = [content_hash(folder)]
    for name in ("philox", "paged", "ragged"):
        with (pieces / f"{name}.py").open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        hashes.append(content_hash(folder))
    assert hashes[0] == hashes[1] and len(set(hashes)) == 3


def test_the_hash_does_not_change_otherwise(tmp_path: Path) -> None:
    folder = write_task(tmp_path / "a")
    before = content_hash(folder)
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "reference.cpython-311.pyc").write_bytes(b"x")
    (folder / "README.md").write_text("notes", encoding="utf-8")
    (folder / "task.yaml").touch()
    assert content_hash(folder) == before
    assert content_hash(write_task(tmp_path / "b")) == before


def test_the_hash_knows_which_file_holds_what(tmp_path: Path) -> None:
    folder = write_task(tmp_path)
    (folder / "expert.py").write_text("", encoding="utf-8")
    before = content_hash(folder)
    (folder / "expert.py").rename(folder / "faster.py")
    assert content_hash(folder) != before


@pytest.mark.parametrize(
    ("patterns", "wanted"),
    [
        ([], IDS),
        (["*"], IDS),
        (["hip2hip/*"], IDS[:2]),
        (["softmax"], (IDS[1], IDS[4])),
        (["triton2triton/normalization/rms_norm"], (IDS[2],)),
        (["*norm", "silu"], (IDS[0], IDS[2], IDS[3])),
        (["!softmax"], (IDS[0], IDS[2], IDS[3])),
        (["hip2hip/*", "!hip2hip/modules/silu"], (IDS[1],)),
        (["*/modules/s[io]*", "!torch2hip/*"], IDS[:2]),
    ],
)
def test_selection(patterns: list[str], wanted: tuple[str, ...]) -> None:
    assert select(IDS, patterns) == wanted


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("rmsnorm", "did you mean rms_norm"),
        ("!sofmax", "did you mean hip2hip/modules/softmax, torch2hip/modules/softmax?"),
        ("zzzzzz", "`arena tasks list`"),
    ],
)
def test_a_pattern_that_matches_nothing_is_an_error(pattern: str, hint: str) -> None:
    with pytest.raises(UsageError, match="no task matches") as caught:
        select(IDS, ["*", pattern])
    assert hint in str(caught.value)


def share(root: Path, text: str = "same_operator_as: triton2triton/suite/scale\n") -> Path:
    """A torch2hip task with the operator of the Triton task beside it."""
    folder = write_task(root, "torch2hip/suite/scale", task=text)
    (folder / "reference.py").unlink()
    (folder / "kernel.py").unlink()
    return folder


def test_an_operator_can_be_shared(tmp_path: Path) -> None:
    own = load_task(write_task(tmp_path))
    shared = load_task(share(tmp_path))
    assert shared.id == "torch2hip/suite/scale" and shared.task_type is TaskType.TORCH2HIP
    assert shared.reference_path == own.reference_path and shared.inputs == own.inputs
    assert shared.baseline_kernel is None and shared.path != own.path


def test_a_shared_operator_is_part_of_the_hash(tmp_path: Path) -> None:
    own = write_task(tmp_path)
    before = load_task(share(tmp_path)).content_hash
    with (own / "reference.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert load_task(tmp_path / "torch2hip/suite/scale").content_hash != before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("same_operator_as: triton2triton/suite/other\n", "there is no task triton2triton/suite/other"),
        ("same_operator_as: scale\n", "does not match"),
        ("same_operator_as: triton2triton/suite/scale\nname: scale\n", "name"),
    ],
)
def test_a_wrong_share_is_refused(tmp_path: Path, text: str, said: str) -> None:
    write_task(tmp_path)
    with pytest.raises(FileError, match=said):
        load_task(share(tmp_path, text))


def test_cases_fit_on_a_screen() -> None:
    folders = (TASKS, TASKS.parent / "corpora")
    files = [path for folder in folders for name in ("seen.yaml", "heldout.yaml") for path in folder.rglob(name)]
    assert len(files) > 2 * len(load_corpus())
    lines = ((path, line) for path in files for line in path.read_text(encoding="utf-8").splitlines())
    assert [(str(path), line) for path, line in lines if len(line) > 120] == []

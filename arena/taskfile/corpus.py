"""The tasks on disk: found by folder, loaded whole, selected by glob."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from arena.errors import FileError, UsageError
from arena.model.task import Task, TaskType
from arena.taskfile import strict_yaml
from arena.taskfile.build import Identity, build_task

TASKS = Path(__file__).parent.parent.parent / "tasks"
DEFINITION = "task.yaml"
HELDOUT = "heldout.yaml"
SHARED = "same_operator_as"
SEMANTICS = Path(__file__).parent.parent / "semantics"
_HASHED_SUFFIXES = (".yaml", ".py", ".hip")
_SHARED_PIECE = re.compile(rb"arena\.semantics\.(\w+)")


def load_task(folder: Path, heldout: Path | None = None) -> Task:
    """Load one task folder, `<tasks>/<task type>/<suite>/<name>`; raises `FileError` for whatever is wrong with it.

    `heldout` names a file of held-out cases to use in place of the committed one; the content hash is then its own.
    """
    folder = folder.resolve()
    if ("", "", "", *folder.parts)[-3] not in TaskType.__members__.values():
        raise FileError(folder, f"must lie under tasks/<task type>/<suite>/, task type one of {', '.join(TaskType)}")
    for needed in (folder / DEFINITION, heldout or folder / HELDOUT):
        if not needed.is_file():
            raise FileError(needed, "is missing")
    definition = _definition(folder)
    documents = (
        definition,
        strict_yaml.read(folder / "seen.yaml", "cases"),
        strict_yaml.read(heldout or folder / HELDOUT, "cases"),
    )
    task = build_task(*documents, Identity(folder, content_hash(folder, heldout, definition.path.parent)))
    for defining in (task.reference_path, task.starting_kernel):
        if defining is not None and not defining.is_file():
            raise FileError(defining, "is missing")
    return task


def _definition(folder: Path) -> strict_yaml.Document:
    """The document that says what a task computes: its own, or that of the task whose operator it shares."""
    document = strict_yaml.parse(folder / DEFINITION)
    if not (isinstance(document.data, dict) and SHARED in document.data):
        strict_yaml.validate(document, "task")
        return document
    strict_yaml.validate(document, "shared_task")
    shared = folder.parents[2] / document.data[SHARED]
    if not (shared / DEFINITION).is_file():
        raise document.error([SHARED], f"there is no task {document.data[SHARED]}")
    return strict_yaml.read(shared / DEFINITION, "task")


def content_hash(folder: Path, heldout: Path | None = None, definition: Path | None = None) -> str:
    """SHA-256 over the names and bytes of the files that define a task.

    They lie in its folder, in that of its definition, and in `arena/semantics` as far as its reference imports them.
    """
    paths = [path for path in sorted(folder.iterdir()) if path.suffix in _HASHED_SUFFIXES]
    if definition is not None and definition != folder:
        paths += [definition / name for name in (DEFINITION, "reference.py")]
    paths += shared_pieces([path for path in paths if path.name == "reference.py" and path.is_file()])
    digest = hashlib.sha256()
    for path in paths:
        data = (heldout if heldout and path.name == HELDOUT else path).read_bytes()
        digest.update(f"{path.name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def shared_pieces(files: Iterable[Path]) -> list[Path]:
    """The modules of `arena.semantics` that these files import, directly or through one another."""
    found: set[Path] = set()
    left = list(files)
    while left:
        named = {SEMANTICS / f"{name.decode()}.py" for name in _SHARED_PIECE.findall(left.pop().read_bytes())}
        new = {path for path in named - found if path.is_file()}
        left += new
        found |= new
    return sorted(found)


def load_corpus(root: Path = TASKS) -> tuple[Task, ...]:
    """Load every task below `root`; one bad file fails the load, nothing is skipped."""
    folders = [root / task_id for task_id in task_ids(root)]
    return tuple(load_task(folder) for folder in folders)


def task_ids(root: Path = TASKS) -> tuple[str, ...]:
    """Ids of every task folder, read from the folder names alone."""
    if not root.is_dir():
        raise UsageError(f"{root}: no such folder of tasks")
    found = []
    for task_type in TaskType:
        for folder in sorted((root / task_type).glob("*/*/")):
            if (folder / "task.yaml").is_file() or any(folder.glob("*.py")):
                found.append(folder.relative_to(root).as_posix())  # noqa: PERF401
    return tuple(found)


def select(ids: Sequence[str], patterns: Iterable[str]) -> tuple[str, ...]:
    """Ids that match any pattern: a whole id, a glob (`hip2hip/*`), a bare name, or `!pattern` to leave out.

    Raises `UsageError` for a pattern that matches nothing, with the nearest names.
    """
    patterns = list(patterns)
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    for pattern in [*wanted, *unwanted]:
        if not any(_matches(task_id, pattern) for task_id in ids):
            raise UsageError(_no_match(pattern, ids))
    return tuple(
        task_id
        for task_id in ids
        if any(_matches(task_id, pattern) for pattern in wanted)
        and not any(_matches(task_id, pattern) for pattern in unwanted)
    )


def _matches(task_id: str, pattern: str) -> bool:
    return fnmatchcase(task_id, pattern) or task_id.rsplit("/", 1)[-1] == pattern


def _no_match(pattern: str, ids: Sequence[str]) -> str:
    import difflib

    names = [*ids, *(task_id.rsplit("/", 1)[-1] for task_id in ids)]
    near = difflib.get_close_matches(pattern, names, n=3, cutoff=0.4)
    hint = f"; did you mean {', '.join(near)}?" if near else "; `arena tasks list` shows all"
    return f"no task matches {pattern!r}{hint}"

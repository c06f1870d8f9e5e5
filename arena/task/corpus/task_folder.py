"""One task on disk: its files, its content hash, and what is loaded from them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from arena.errors import FileError
from arena.package import PACKAGE, resource, tasks_of_other_copies
from arena.task.corpus import strict_yaml
from arena.task.corpus.build import Identity, build_task
from arena.task.definition import Task, TaskType

TASKS = resource("tasks")
DEFINITION = "task.yaml"
HELDOUT = "heldout.yaml"
SHARED = "same_operator_as"
HIDE = "ARENA_HIDE"
"""further folders to hide from candidates, with colons between them: of services whose sockets lie in files"""
SEMANTICS = PACKAGE / "semantics"
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
    for defining in (task.reference_path, task.baseline_kernel):
        if defining is not None and not defining.is_file():
            raise FileError(defining, "is missing")
    for path in folder.iterdir():
        if path.suffix in (".py", ".hip"):
            strict_yaml.utf8_text(path)
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


def hidden_from_candidates(task: Task) -> tuple[Path, ...]:
    """Return the folders that no candidate of `task` may see: its own corpus, the shipped ones, and those of `HIDE`."""
    others = (Path(folder) for folder in os.environ.get(HIDE, "").split(os.pathsep) if folder)
    shipped = (TASKS, *tasks_of_other_copies())
    return tuple(dict.fromkeys((task.path.parents[2], *shipped, *(folder for folder in others if folder.is_dir()))))


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

"""Evidence of before the cases of a task changed that still holds: for the page on the quality of the tasks.

A kernel's time in a case holds while definition, reference, kernels and that case are the same. That a mutant was
rejected holds also if cases were added since.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

from arena.results.record import CaseResult
from arena.task.corpus.task_folder import DEFINITION, HELDOUT, shared_pieces
from arena.task.definition import Task

_DIGITS = 12
_CASES = ("seen.yaml", HELDOUT)
_WORDS = ("doc", "domain")


class TaskVersion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task as it was when something was measured."""

    definition: str
    """hash of its files but those of cases, and of what task.yaml says in words"""
    cases: tuple[str, ...]
    """hash of each case's label, sorted"""


Versions = Mapping[str, TaskVersion]
"""by content hash"""


def version_of(task: Task) -> TaskVersion:
    """Return the present version of a task."""
    return TaskVersion(_definition(task), tuple(sorted(_digest(case.label.encode()) for case in task.cases)))


def read_versions(path: Path) -> dict[str, TaskVersion]:
    """Read a file of versions."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, TaskVersion])


def written(versions: Versions) -> bytes:
    """Return the content of a file of versions, a line each."""
    lines = (f'"{name}": {msgspec.json.encode(version).decode()}' for name, version in sorted(versions.items()))
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def all_holds(old: TaskVersion | None, new: TaskVersion) -> bool:
    """Return whether the two differ in nothing but cases that were added."""
    return old is not None and old.definition == new.definition and set(old.cases) <= set(new.cases)


def held_cases(
    old: TaskVersion | None, task: Task, cases: tuple[CaseResult, ...], *, timed: bool = True
) -> tuple[CaseResult, ...]:
    """Return the results, of an evaluation of an old version of a task, in cases that it has now: all, or the timed."""
    if old is None or old.definition != _definition(task):
        return ()
    present = {case.label for case in task.cases if case.timed or not timed}
    return tuple(case for case in cases if case.label in present)


def _definition(task: Task) -> str:
    own = [path for path in sorted(task.path.iterdir()) if path.is_file() and path.name not in _CASES]
    shared = [] if task.definition == task.path else [task.definition / DEFINITION, task.reference_path]
    files = [*own, *shared, *shared_pieces([task.reference_path])]
    return _digest(b"".join(f"{path.name} {_digest(_content(path))}\n".encode() for path in files))


def _content(path: Path) -> bytes:
    """Return what a file holds; of task.yaml what decides: no exceptions, and no words and domains of arguments."""
    if path.name != DEFINITION:
        return path.read_bytes()
    data = yaml.safe_load(path.read_bytes())
    data.pop("exceptions", None)
    for side in ("inputs", "outputs"):
        said = data.get(side) or {}
        data[side] = {name: {k: v for k, v in spec.items() if k not in _WORDS} for name, spec in said.items()}
    return json.dumps(data, sort_keys=False).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]

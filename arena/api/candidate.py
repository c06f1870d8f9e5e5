"""Candidates as users name them: a path, or source as text or bytes. Used by the API and the command line."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from arena.errors import UsageError
from arena.task.definition import TaskType

Candidate = str | bytes | PathLike[str]
_SHOWN_CHARACTERS = 100


def require_candidate(candidate: Candidate, task_type: TaskType) -> None:
    """Raise `UsageError` unless a candidate is source, or an existing file of the task type's kind."""
    path = _path(candidate)
    if path is None:
        return
    if not os.path.isfile(path):  # noqa: PTH113 - False also for what no file system takes for a name
        advice = "; a string is source only if it has a line break" if isinstance(candidate, str) else ""
        raise UsageError(f"{_cut(str(path))}: no such file{advice}")
    if path.suffix != Path(task_type.kernel_file).suffix:
        raise UsageError(f"{path}: a {task_type} task takes {task_type.kernel_file}")


def write_candidate(candidate: Candidate, task_type: TaskType, folder: Path) -> Path:
    """Return the candidate's file; source is written to `folder` first. Raises as `require_candidate` does."""
    require_candidate(candidate, task_type)
    path = _path(candidate)
    if path is not None:
        return path
    assert isinstance(candidate, str | bytes)
    place = folder / task_type.kernel_file
    place.write_bytes(candidate.encode() if isinstance(candidate, str) else candidate)
    return place


def _path(candidate: Candidate) -> Path | None:
    """Return the path that a candidate is; None for bytes and for text of more than one line."""
    if isinstance(candidate, bytes) or (isinstance(candidate, str) and "\n" in candidate):
        return None
    if not isinstance(candidate, str | PathLike):
        raise UsageError(f"{candidate!r} is no candidate; expected a path, or source as bytes or text")
    return Path(candidate)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"

"""Tasks to train on and tasks to evaluate with: `SPLIT.json` of a corpus declares the latter, the rest is the former.

Whole suites, and the same operator in every task type, lie on one side: a near duplicate would give the other away.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from arena.errors import FileError

FILE = "SPLIT.json"


class TaskSplit(StrEnum):
    """Which tasks are meant. A corpus without a `SPLIT.json` is for training alone."""

    ALL = "all"
    TRAIN = "train"
    EVALUATION = "evaluation"


class _Declared(msgspec.Struct, forbid_unknown_fields=True):
    evaluation: list[str]


def tasks_of(split: TaskSplit, folders: Mapping[str, Path]) -> tuple[str, ...]:
    """Return the ids of the tasks of a split, of these task folders by id. Raises `FileError`."""
    held = {task_id: _is_evaluation(task_id, folder.parents[2]) for task_id, folder in folders.items()}
    return tuple(name for name in folders if split is TaskSplit.ALL or held[name] == (split is TaskSplit.EVALUATION))


def _is_evaluation(task_id: str, corpus: Path) -> bool:
    return any(fnmatchcase(task_id, pattern) for pattern in _declared(corpus))


@cache
def _declared(corpus: Path) -> tuple[str, ...]:
    file = corpus / FILE
    if not file.is_file():
        return ()
    try:
        return tuple(msgspec.json.decode(file.read_bytes(), type=_Declared).evaluation)
    except msgspec.MsgspecError as problem:
        raise FileError(str(file), f"not the split that is expected: {problem}") from None

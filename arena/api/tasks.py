"""Find and load tasks by id."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from arena.api.arguments import listed, task_name
from arena.task.corpus.corpora import open_corpora
from arena.task.definition import Task

Folders = Sequence[str | PathLike[str]]


def list_tasks(*patterns: str, corpora: Folders = ()) -> tuple[str, ...]:
    """Return the ids of the tasks that match.

    Args:
        *patterns: ids, bare names or globs such as `hip2hip/*`; `!pattern` leaves tasks out. None: all tasks.
        corpora: folders of tasks, laid out `<task type>/<suite>/<name>`, in place of the shipped ones.

    Returns:
        Ids `<task type>/<suite>/<name>` in the order of the folders.

    Raises:
        UsageError: a pattern matches nothing, or a folder is missing.

    Examples:
        >>> import arena
        >>> arena.list_tasks("rms_norm")
        ('triton2triton/normalization/rms_norm',)
    """
    wanted = [task_name(pattern) for pattern in patterns]
    return open_corpora(_folders(corpora)).select(wanted or ["*"])


def load_task(name: str | PathLike[str], *, corpora: Folders = ()) -> Task:
    """Load one task with its definition, seen and held-out cases.

    Args:
        name: a task id, a bare name that only one task has, or a task folder.
        corpora: folders of tasks in place of the shipped ones.

    Returns:
        The task; its fields are those of `task.yaml`.

    Raises:
        UsageError: no task, or several, have this name.
        FileError: a file of the task is malformed; the message names the line.

    Examples:
        >>> import arena
        >>> task = arena.load_task("rms_norm")
        >>> task.entry, len(task.seen) > 3
        ('rms_norm', True)
    """
    return open_corpora(_folders(corpora)).find(task_name(name))


def _folders(corpora: Folders) -> list[Path]:
    return [Path(folder) for folder in listed("corpora", corpora)]

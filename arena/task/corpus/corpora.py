"""Folders of tasks: which there are, chosen by id, each loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arena.errors import FileError, UsageError
from arena.task.corpus.core import with_core
from arena.task.corpus.selection import select
from arena.task.corpus.task_folder import DEFINITION, TASKS, load_task
from arena.task.definition import Task, TaskType


@dataclass(frozen=True)
class Corpora:
    """Task folders by id, below one or several folders `<corpus>/<task type>/<suite>/<name>`."""

    folders: Mapping[str, Path]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all tasks."""
        return tuple(self.folders)

    def select(self, patterns: Iterable[str]) -> tuple[str, ...]:
        """Return the ids that any pattern matches; see `selection.select` and `core.with_core`."""
        parts = [part for pattern in patterns for part in pattern.split(",") if part]
        return select(self.ids, with_core(parts, self.ids))

    def including(self, patterns: Iterable[str]) -> tuple[Corpora, tuple[str, ...]]:
        """Return these folders with those task folders that patterns are, and the patterns with their ids in place."""
        patterns = tuple(patterns)
        named = {text: Path(text).resolve() for text in patterns if (Path(text) / DEFINITION).is_file()}
        ids = {text: _id(path) for text, path in named.items()}
        added = {ids[text]: path for text, path in named.items()}
        return Corpora({**self.folders, **added}), tuple(ids.get(text, text) for text in patterns)

    def load(self, task_id: str, heldout: Path | None = None) -> Task:
        """Load one task; raises `FileError` where its files are malformed."""
        return load_task(self.folders[task_id], heldout)

    def load_selected(self, patterns: Iterable[str]) -> dict[str, Task]:
        """Load the tasks that the patterns choose, and no other."""
        return {task_id: self.load(task_id) for task_id in self.select(patterns)}

    def load_valid(self) -> dict[str, Task]:
        """Load every task whose files are well-formed."""
        loaded = {}
        for task_id in self.ids:
            try:
                loaded[task_id] = self.load(task_id)
            except FileError:
                continue
        return loaded

    def find(self, name: str) -> Task:
        """Load one task by id, bare name or folder; raises `UsageError` where the name fits none or several."""
        if (Path(name) / DEFINITION).is_file():
            return load_task(Path(name))
        found = select(self.ids, [name])
        if len(found) > 1:
            raise UsageError(f"{name!r} is the name of several tasks: {', '.join(found)}")
        return self.load(found[0])


def open_corpora(folders: Sequence[Path] = ()) -> Corpora:
    """Find the tasks below some folders, by default the shipped ones, from folder names alone.

    Raises:
        UsageError: a folder is missing, or two hold a task of the same id.
    """
    found: dict[str, Path] = {}
    for folder in folders or (TASKS,):
        for path in _task_folders(folder.resolve()):
            task_id = _id(path)
            if task_id in found:
                raise UsageError(f"{task_id} is both in {found[task_id]} and in {path}")
            found[task_id] = path
    return Corpora(found)


def _id(folder: Path) -> str:
    return "/".join(folder.parts[-3:])


def load_corpus(folder: Path = TASKS) -> tuple[Task, ...]:
    """Load every task below one folder; one malformed file fails the load."""
    corpora = open_corpora([folder])
    return tuple(corpora.load(task_id) for task_id in corpora.ids)


def _task_folders(root: Path) -> list[Path]:
    if not root.is_dir():
        raise UsageError(f"{root}: no such folder of tasks")
    return [
        folder
        for task_type in TaskType
        for folder in sorted((root / task_type).glob("*/*/"))
        if (folder / DEFINITION).is_file() or any(folder.glob("*.py"))
    ]

"""The shipped tasks, loaded once in each process of the test runner: loading all takes seconds."""

from __future__ import annotations

from functools import cache

from arena.task.corpus.corpora import load_corpus
from arena.task.definition import Task


@cache
def shipped_tasks() -> dict[str, Task]:
    """Return every shipped task by id, in the order of the corpus."""
    return {task.id: task for task in load_corpus()}

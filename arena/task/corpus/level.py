"""`corpus.yaml` beside the tasks of a corpus: how much `arena tasks check` demands of them."""

from __future__ import annotations

from pathlib import Path

from arena.task.corpus import strict_yaml
from arena.task.definition import Task
from arena.task.rules import RuleLevel

FILE = "corpus.yaml"


def level_of_corpus(corpus: Path) -> RuleLevel:
    """Return the level that a corpus names under `rules`, `own` without a corpus.yaml. Raises `FileError`."""
    path = corpus / FILE
    return RuleLevel(strict_yaml.read(path, "corpus").data["rules"]) if path.is_file() else RuleLevel.OWN


def level_of(task: Task) -> RuleLevel:
    """Return the level of the corpus that a task lies in. Raises `FileError`."""
    return level_of_corpus(task.path.parents[2])

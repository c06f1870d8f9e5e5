"""The corpus `corpora/frontier`: what every task of it has. That its kernels are right is `arena tasks check`'s."""

from __future__ import annotations

import pytest

from arena.task.corpus.corpora import load_corpus
from arena.task.corpus.level import level_of
from arena.task.corpus.task_folder import TASKS
from arena.task.definition import Task
from arena.task.rules import RuleLevel

CORPUS = TASKS.parent / "corpora/frontier"
TASKS_OF_IT = {task.id: task for task in load_corpus(CORPUS)}
FAULTS = TASKS.parent / "tests/shipped_faults"
each_task = pytest.mark.parametrize("task", TASKS_OF_IT.values(), ids=TASKS_OF_IT)


@each_task
def test_a_task_is_whole(task: Task) -> None:
    assert level_of(task) is RuleLevel.STRICT
    assert task.expert is not None
    assert task.source.strip()
    assert len(task.heldout) >= 8
    assert len({case.kind for case in task.heldout}) >= 5
    assert any(case.kind == "production" for case in task.heldout)


@each_task
def test_two_faults_of_each_task_are_kept(task: Task) -> None:
    kept = [path for path in (FAULTS / task.name).glob("*") if path.suffix in (".py", ".hip")]
    assert len(kept) >= 2


def test_a_name_means_one_task_of_all_corpora() -> None:
    names = [path.parent.name for path in TASKS.parent.glob("corpora/*/*/*/*/task.yaml")]
    names += {path.parent.name for path in TASKS.glob("*/*/*/task.yaml")}  # of which several types may have one
    assert len(names) == len(set(names))

"""The pattern `core`, and the tasks that it stands for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from arena.errors import UsageError
from arena.task.corpus.core import core_tasks
from arena.task.corpus.corpora import load_corpus, open_corpora


def test_the_pattern_stands_for_its_tasks() -> None:
    corpora = open_corpora()
    assert set(corpora.select(["core"])) == set(core_tasks())
    assert set(corpora.select(["*", "!core"])) == set(corpora.ids) - set(core_tasks())
    assert set(corpora.select(["core,!*/moe/*"])) == {name for name in core_tasks() if "/moe/" not in name}


def test_a_corpus_without_these_tasks_has_no_core() -> None:
    with pytest.raises(UsageError, match="`core` names tasks of the shipped corpus"):
        open_corpora([Path("corpora/frontier")]).select(["core"])


def test_every_suite_is_in_it_and_a_family_once() -> None:
    tasks = {task.id: task for task in load_corpus()}
    suites = {name.rsplit("/", 1)[0] for name in tasks}
    assert {name.rsplit("/", 1)[0] for name in core_tasks()} == suites
    assert set(Counter(tasks[name].family for name in core_tasks()).values()) == {1}
    assert not any(name.endswith("/core") for name in tasks), "the pattern would mean both"

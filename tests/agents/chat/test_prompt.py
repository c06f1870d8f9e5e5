"""The first message of every shipped task: its length, and the headers that it names instead of showing them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arena.agents.chat.prompt import asked_headers, files_of, long_headers, prompt_of
from arena.cli.tasks_prompt import environment_here
from arena.results.session import Limits
from arena.runs.service.workspace import prepare
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Task
from tests.shipped import shipped_tasks

LONGEST_WORDS = 6000
MLP = "hip2hip/modules/mlp"


def prepared(task: Task, folder: Path) -> Path:
    folder.mkdir(parents=True)
    prepare(folder, task, environment_here("cpu"), Limits())
    return folder


@pytest.mark.slow
def test_the_prompt_of_each_shipped_task_is_short_and_names_headers_that_exist(tmp_path: Path) -> None:
    for name, task in shipped_tasks().items():
        folder = prepared(task, tmp_path / name)
        text = prompt_of(folder, task.task_type.kernel_file, task.entry)
        assert len(text.split()) <= LONGEST_WORDS, name
        for header in re.findall(r"`(headers/\w+\.h)`", text):
            assert (folder / header).is_file(), (name, header)
        for header in re.findall(r'^#include "(\w+\.h)"', text, re.MULTILINE):
            assert header == "task.h" or f"`headers/{header}`" in text, (name, header)


@pytest.mark.parametrize(("turns", "told"), [(1, "A kernel may include it."), (2, "answer with its name")])
def test_a_long_header_is_named_and_not_shown(tmp_path: Path, turns: int, told: str) -> None:
    task = load_task(TASKS / MLP)
    folder = prepared(task, tmp_path / "workspace")
    headers = long_headers(files_of(folder))
    assert {"headers/matrix.h", "headers/product.h"} == headers.keys()
    text = prompt_of(folder, task.task_type.kernel_file, task.entry, turns)
    for name, content in headers.items():
        assert f"`{name}` (" in text and content.strip() not in text
    assert told in text.splitlines()[-1]


def test_an_answer_that_names_a_header_is_given_it() -> None:
    headers = {"headers/matrix.h": "one\n", "headers/product.h": "two\n"}
    assert asked_headers("Show me headers/product.h first.", headers).endswith(
        "`headers/product.h`:\n\n```cpp\ntwo\n```\n"
    )
    assert asked_headers("I give up.", headers) == ""

"""One small task, for what looks at buffers and rounds."""

from __future__ import annotations

import pytest

from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Arguments, Task, arguments


@pytest.fixture(scope="module")
def task() -> Task:
    return load_task(TASKS / "triton2triton/normalization/rms_norm")


@pytest.fixture
def case(task: Task) -> Arguments:
    return arguments(task, task.seen[0])

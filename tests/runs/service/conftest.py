"""A task for tests of judges that take turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from tests.task.corpus.folders import write_task


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A small task in a folder of its own."""
    return load_task(write_task(tmp_path / "tasks"))

"""A task to change, and a judge for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.checks.tasks.judge import TaskCheckClient
from tests.checks.tasks.affine import FILES, PLACE, Kept, MakeJudge, Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the task with some files changed, and return its corpus."""

    def written(changed: dict[str, str]) -> Path:
        folder = tmp_path / PLACE
        folder.mkdir(parents=True)
        for name, text in {**FILES, **changed}.items():
            (folder / name).write_text(text, encoding="utf-8")
        return tmp_path

    return written


@pytest.fixture(scope="module")
def make_judge() -> Iterator[MakeJudge]:
    """A judge that all tests of the module share."""
    with TaskCheckClient("cpu") as judge:
        yield lambda platform, device: Kept(judge)

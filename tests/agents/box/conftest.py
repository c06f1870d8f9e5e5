"""Folders for boxes: under the fallback another user must be able to pass them, which pytest's own do not allow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.agents.box import BoxPlan
from arena.processes.scratch import scratch
from tests.agents.box import boxes


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch("boxtest") as name:
        yield Path(name)


@pytest.fixture
def plan(place: Path) -> BoxPlan:
    return boxes.folders(place)


QUICK = ["only_workspace_and_home", "daemon_ends_with_its_box", "exit_codes_and_input", "busy_process"]
"""Tests that try the fallback with every change; the others do so in `make test-all`."""


@pytest.fixture(params=["bubblewrap", pytest.param("fallback", marks=pytest.mark.slow(but=QUICK))])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)

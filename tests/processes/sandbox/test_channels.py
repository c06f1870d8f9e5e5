"""What one worker leaves for a later one: 64 bits, by every channel that we can name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from arena.processes.sandbox import network
from arena.processes.sandbox.escape import attempt_escape
from tests.processes.sandbox.channels import CHANNELS

REFUSING = [sys.executable, "-m", "tests.processes.sandbox.refusing"]


def _found(folder: Path, *, confined: bool, shared: bool = False, refused: bool = False) -> set[str]:
    command = [sys.executable, "-m", "tests.processes.sandbox.channels", str(folder), str(int(confined))]
    done = subprocess.run(
        [*(REFUSING if refused else []), *network.starting(command, shared=shared)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[3],
        check=True,
    )
    return set(json.loads(done.stdout))


@pytest.fixture
def walls() -> None:
    level = attempt_escape().level.split("+")
    missing = {"read-only", "network", "seccomp"} - set(level)
    if missing or not any(part.startswith("landlock") for part in level):
        pytest.skip(f"walls are missing on this machine: {level}")


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize("shared", [False, True])
def test_a_later_host_finds_nothing(tmp_path: Path, shared: bool) -> None:
    """Nor does it in a network that all workers of a judge share."""
    assert _found(tmp_path, confined=True, shared=shared) == set()


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize("shared", [False, True])
def test_where_namespaces_are_refused_modes_of_files_are_left(tmp_path: Path, shared: bool) -> None:
    """And the dates that reading leaves, where the file system keeps them: both need the read-only view."""
    found = _found(tmp_path, confined=True, shared=shared, refused=True)
    assert found <= {"modes of files", "the dates that reading leaves"}


def test_without_walls_it_finds_nearly_all(tmp_path: Path) -> None:
    """So a channel that is closed is closed by a wall. Which file systems keep attributes, dates and pages differs."""
    found = _found(tmp_path, confined=False)
    assert len(found) >= len(CHANNELS) - 8
    assert {"a file in /tmp", "a System V segment", "the date of a file", "a process that stays"} <= found

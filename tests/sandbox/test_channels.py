"""What one worker leaves for a later one: 64 bits, by every channel that we can name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from arena.sandbox.escape import attempt_escape
from tests.sandbox.channels import CHANNELS


def _found(folder: Path, *, confined: bool) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.sandbox.channels", str(folder), str(int(confined))],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
        check=True,
    )
    return set(json.loads(done.stdout))


def test_a_later_host_finds_nothing(tmp_path: Path) -> None:
    level = attempt_escape().level.split("+")
    missing = {"read-only", "network", "seccomp"} - set(level)
    if missing or not any(part.startswith("landlock") for part in level):
        pytest.skip(f"walls are missing on this machine: {level}")
    assert _found(tmp_path, confined=True) == set()


def test_without_walls_it_finds_nearly_all(tmp_path: Path) -> None:
    """So a channel that is closed is closed by a wall. Which file systems keep attributes and dates differs."""
    found = _found(tmp_path, confined=False)
    assert len(found) >= len(CHANNELS) - 5
    assert {"a file in /tmp", "a System V segment", "the date of a file", "a process that stays"} <= found

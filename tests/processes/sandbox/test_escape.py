"""What gets out of a worker's walls, tried for real; and that the same attempts do get out of weaker ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from arena.processes.sandbox.escape import Escape, attempt_escape

_TELL = """
import json
from dataclasses import asdict
from arena.processes.sandbox.escape import attempt_escape
print(json.dumps(asdict(attempt_escape())))
"""


@pytest.fixture(scope="module")
def tried() -> Escape:
    return attempt_escape()


def needs(tried: Escape, *walls: str) -> None:
    missing = [wall for wall in walls if wall not in tried.level]
    if missing:
        pytest.skip(f"no {', '.join(missing)} on this machine: {tried.level}")


def test_nothing_gets_out_of_the_full_walls(tried: Escape) -> None:
    needs(tried, "network", "mount", "landlock", "seccomp")
    assert tried.open == () and len(tried.attempts) >= 23


def test_the_filter_alone_holds_what_it_is_for(tried: Escape) -> None:
    needs(tried, "seccomp")
    named = {attempt.what: attempt.held for attempt in tried.attempts}
    assert all(held for what, held in named.items() if "trace" in what or "mount" in what or "processor" in what)
    assert named["leave its process group"] and named["signal another process"]
    assert named["have the kernel signal another process"] and named["leave a System V segment"]


def test_the_switch_takes_the_new_walls_away_and_the_attempts_then_succeed() -> None:
    """So each of them is a real one: what is refused above is refused by a wall."""
    done = subprocess.run(
        [sys.executable, "-c", _TELL],
        env={**os.environ, "ARENA_SANDBOX": "basic"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said = json.loads(done.stdout)
    assert said["level"].endswith("+basic") and "seccomp" not in said["level"]
    out = {attempt["what"] for attempt in said["attempts"] if not attempt["held"]}
    assert {"read a file that it was not shown", "signal another process", "renice another process"} <= out
    assert {"have the kernel signal another process", "set a timer that signals", "leave a System V segment"} <= out
    assert "start a process beside itself" in out


def test_a_switch_that_means_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from arena.errors import UsageError
    from arena.processes.sandbox import confinement

    monkeypatch.setenv("ARENA_SANDBOX", "off")
    with pytest.raises(UsageError, match="ARENA_SANDBOX=off"):
        confinement.is_basic()

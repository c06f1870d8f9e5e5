"""A run of agents that is killed at random moments, and resumed, gives the records of one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.results.session import Ending
from arena.results.transcripts import read_transcript, transcript_path
from arena.results.verdict import Status
from arena.runs import records
from tests.task.corpus.folders import TASK, write_task

TASKS = 12
KILLS = 3
_TIMES = ("at_s", "seconds", "active_s", "paused_s", "started_at", "host_s")


def start(tasks: Path, folder: Path, scratch: Path) -> subprocess.Popen[bytes]:
    """A run whose temporary folders are its own: those of tests beside this one come and go."""
    command = [sys.executable, "-m", "tests.agents.scripted_run", str(tasks), str(folder)]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def without_times(value: Any) -> Any:
    """A record with everything removed that no two runs share."""
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in _TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def read(folder: Path) -> list[Any]:
    return [without_times(msgspec.json.decode(msgspec.json.encode(trial))) for trial in records.read_run(folder).trials]


def agents_alive() -> list[str]:
    """Command lines of processes that a scripted agent left behind."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "nothing to improve" in text or 'write_text("# ' in text:
            found.append(text)
    return found


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for temporary files, with a path that sockets can have."""
    with tempfile.TemporaryDirectory(prefix="resume-", dir="/tmp") as name:
        yield Path(name)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_killed_and_resumed(tmp_path: Path, scratch: Path) -> None:
    tasks = tmp_path / "tasks"
    for index in range(TASKS):
        name = f"scale{index}"
        write_task(tasks, f"triton2triton/suite/{name}", task=TASK.replace("name: scale", f"name: {name}"))
    whole, broken = tmp_path / "runs" / "whole", tmp_path / "runs" / "broken"
    begun = time.monotonic()
    assert start(tasks, whole, scratch).wait(200) == 0
    took = time.monotonic() - begun
    chance = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID", "5"))
    left: set[Path] = set()
    for _ in range(KILLS):
        run = start(tasks, broken, scratch)
        time.sleep(1.5 + chance.random() * took / KILLS)
        left |= set(scratch.glob("arena-*"))
        run.send_signal(signal.SIGKILL)
        run.wait(60)
    assert left
    deadline = time.monotonic() + 60
    while agents_alive() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert agents_alive() == []
    assert start(tasks, broken, scratch).wait(200) == 0
    assert read(broken) == [{**record, "run": "scripted"} for record in read(whole)]
    assert list(scratch.glob("arena-*")) == []
    trials = records.read_run(broken).trials
    assert len(trials) == TASKS * 2 * 3
    by_agent = {
        agent: {trial.status for trial in trials if trial.agent == agent} for agent in {trial.agent for trial in trials}
    }
    assert by_agent == {
        "steady": {Status.PASSED},
        "regretting": {Status.PASSED},
        "idle": {Status.NOTHING_SUBMITTED},
    }
    for trial in trials:
        assert trial.session is not None and trial.session.ending is Ending.FINISHED
        transcript = read_transcript(transcript_path(broken, *trial.key))
        assert len(transcript.evaluations) == len(trial.session.evaluations)

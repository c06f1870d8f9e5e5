"""How workers are scheduled, on real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.judge.workers import scheduling
from arena.judge.workers.scheduling import Choice, choose, difference

_TWO_THREADS = """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", _TWO_THREADS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def _threads(worker: subprocess.Popen[bytes]) -> list[int]:
    return sorted(int(name) for name in os.listdir(f"/proc/{worker.pid}/task"))  # noqa: PTH208


def test_a_worker_is_as_it_was_chosen(worker: subprocess.Popen[bytes]) -> None:
    os.sched_setaffinity(worker.pid, {min(os.sched_getaffinity(0))})
    choice = choose(worker.pid)
    assert os.sched_getaffinity(worker.pid) == os.sched_getaffinity(0)
    os.sched_setaffinity(_threads(worker)[1], choice.processors)
    assert difference(worker.pid, choice, exactly=True) == ""


@pytest.mark.parametrize("which", [0, 1])
def test_every_thread_is_looked_at(worker: subprocess.Popen[bytes], which: int) -> None:
    choice, thread = choose(worker.pid), _threads(worker)[which]
    lower = min(choice.nice + 7, 19)
    os.setpriority(os.PRIO_PROCESS, thread, lower)
    assert difference(worker.pid, choice, exactly=True) == f"nice value {lower} instead of {choice.nice}"
    assert difference(worker.pid, choice, exactly=False) == "", "it may hold itself back"


def test_idle_scheduling_is_seen(worker: subprocess.Popen[bytes]) -> None:
    choice = choose(worker.pid)
    os.sched_setscheduler(worker.pid, os.SCHED_IDLE, os.sched_param(0))
    assert difference(worker.pid, choice, exactly=True) == f"scheduling policy {os.SCHED_IDLE} instead of 0"


def test_other_processors_are_seen_and_more_than_were_chosen(worker: subprocess.Popen[bytes]) -> None:
    if os.cpu_count() == 1:
        pytest.skip("there is one processor")
    first, *rest = sorted(os.sched_getaffinity(0))
    everywhere = choose(worker.pid)
    os.sched_setaffinity(worker.pid, {first})
    assert difference(worker.pid, everywhere, exactly=True).startswith(f"processors {first} instead of {first},")
    assert difference(worker.pid, everywhere, exactly=False) == ""
    there = Choice(frozenset(rest), everywhere.nice, everywhere.policy)
    assert difference(worker.pid, there, exactly=False) != ""


def test_a_worker_that_has_ended_is_not_moved(worker: subprocess.Popen[bytes]) -> None:
    choice = choose(worker.pid)
    worker.kill()
    worker.wait()
    assert difference(worker.pid, choice, exactly=True) == "" and choose(worker.pid) == choice


@pytest.mark.parametrize(
    ("quota", "most"), [("100000 100000", 1), ("50000 100000", 1), ("max 100000", None), ("250000 100000", 2)]
)
def test_processors_that_may_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, most: int | None
) -> None:
    """A container has as much processor time as its control group, however many processors it sees."""
    file = tmp_path / "cpu.max"
    file.write_text(quota + "\n", encoding="ascii")
    monkeypatch.setattr(scheduling, "_QUOTA", file)
    every = sorted(os.sched_getaffinity(0))
    assert list(scheduling.usable()) == every[:most]
    monkeypatch.setattr(scheduling, "_QUOTA", tmp_path / "absent")
    assert list(scheduling.usable()) == every


def test_a_worker_stays_where_it_was_asked_for(worker: subprocess.Popen[bytes]) -> None:
    every = os.sched_getaffinity(0)
    with scheduling.on(max(every)):
        choice = choose(worker.pid)
    assert os.sched_getaffinity(0) == every, "whoever asked for it draws inputs on all processors"
    assert choice.processors == os.sched_getaffinity(worker.pid) == {max(every)}

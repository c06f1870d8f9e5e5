"""A worker that is stopped while the baseline is timed does not run; one that does voids the timing."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from arena.judge.workers import watchdog
from arena.judge.workers.watchdog import WatchedWorker
from arena.judge.workers.worker import CandidateFailed, Worker
from arena.processes.sandbox.cgroup import ControlGroup
from arena.results.verdict import Status
from tests.processes.sandbox.signalling import CONTINUED_BY_A_TIMER

_QUIET = "import time; print(flush=True); time.sleep(60)"
_BUSY = "print(flush=True)\nwhile True: pass"
_LOOKED_AT_S = 0.3


class Channel:
    """Nobody is at its other end."""

    def close(self) -> None:
        """There is nothing to close."""


class Template:
    """Whoever started it collects it."""

    def ended(self, _: int) -> None:
        """It does not know."""


Start = Callable[[str], WatchedWorker]


@pytest.fixture
def start() -> Iterator[Start]:
    processes: list[subprocess.Popen[bytes]] = []
    workers: list[WatchedWorker] = []

    def started(code: str) -> WatchedWorker:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)
        processes.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        log = tempfile.TemporaryFile()  # noqa: SIM115 - the worker closes it
        worker: Any = SimpleNamespace(
            isolation="", _fork_server=Template(), _pid=process.pid, _channel=Channel(), _log=log, _flags=None
        )
        workers.append(WatchedWorker(worker, 1 << 40))
        return workers[-1]

    yield started
    for worker, process in zip(workers, processes, strict=True):
        worker.kill()
        process.communicate()
        worker.kill_worker()


def stopped(worker: WatchedWorker) -> WatchedWorker:
    time.sleep(0.1)
    worker.stop()
    return worker


@pytest.fixture
def no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ControlGroup, "hold", lambda *_: None)


@pytest.mark.parametrize("code", [_QUIET, _BUSY])
@pytest.mark.usefixtures("no_group")
def test_what_is_stopped_by_a_signal_takes_no_time(start: Start, code: str) -> None:
    worker = stopped(start(code))
    with worker.still():
        time.sleep(_LOOKED_AT_S)


@pytest.mark.usefixtures("no_group")
def test_one_that_a_timer_continues_voids_the_timing(start: Start) -> None:
    worker = stopped(start(CONTINUED_BY_A_TIMER))
    with pytest.raises(CandidateFailed, match="of processor time while it was stopped") as failure, worker.still():
        time.sleep(_LOOKED_AT_S)
    assert failure.value.status is Status.TIMING_MISMATCH


@pytest.mark.usefixtures("no_group")
def test_so_does_one_that_a_signal_continues(start: Start) -> None:
    worker = stopped(start(_BUSY))
    with pytest.raises(CandidateFailed, match="while it was stopped"), worker.still():
        Worker.resume(worker)
        time.sleep(_LOOKED_AT_S)


@pytest.mark.parametrize("code", [_BUSY, CONTINUED_BY_A_TIMER])
def test_in_a_control_group_nothing_wakes_it(start: Start, code: str) -> None:
    probe = ControlGroup.make()
    if probe is None:
        pytest.skip("no control group can be made here")
    probe.remove()
    worker = start(code)
    deadline = time.monotonic() + 60
    while worker._watch.group is None and time.monotonic() < deadline:
        time.sleep(0.01)
    stopped(worker)
    with worker.still():
        time.sleep(_LOOKED_AT_S)
    worker.resume()
    before = watchdog._processor_s(worker._pid)
    time.sleep(_LOOKED_AT_S)
    assert watchdog._processor_s(worker._pid) > before, "it goes on when it is told to"

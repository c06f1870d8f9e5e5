"""Measure whether work that a worker has left on the device delays the judge's kernels, before the first candidate."""

from __future__ import annotations

import time

from arena.judge.workers.worker import Worker
from arena.platforms.base import Platform
from arena.processes.protocol import Linger, Prepare

NAME = "late work"
"""the key of the finding in the versions of a record"""
DELAYS = "delays the judge"
UNSEEN = "runs beside the judge: found by spot comparisons alone"
UNKNOWN = "not measured"

_CALM_S, _LOOK_S, _LEFT_S = 1.0, 0.01, 0.005
_CYCLES, _LONGER = 50_000_000, 10
"""25 ms of a GPU's clock; how much longer where that was over before the judge had looked"""
_TRIALS, _ENOUGH = 6, 3


def measure_late_work(device: Platform, worker: Worker, timeout_s: float) -> str:
    """Have a worker leave a long kernel of one block, and wait for an idle device meanwhile.

    Returns:
        `DELAYS` where the wait took notice three times, `UNSEEN` where it ended while the kernel was still running,
        else `UNKNOWN`. Raises `CandidateFailed` where the worker fails.
    """
    worker.ask(Prepare(), timeout_s)
    cycles, noticed = _CYCLES, 0
    for _ in range(_TRIALS):
        device.wait_until_idle(_CALM_S)
        usual_s = _waited_s(worker, timeout_s)
        worker.ask(Linger(cycles), timeout_s)
        idle = device.wait_until_idle(_LOOK_S)
        left_s = _waited_s(worker, timeout_s)
        if not idle:
            noticed += 1
        elif left_s > usual_s + _LEFT_S:
            return UNSEEN
        else:
            cycles *= _LONGER
        if noticed == _ENOUGH:
            return DELAYS
    return UNKNOWN


def _waited_s(worker: Worker, timeout_s: float) -> float:
    """Return how long the worker takes to run next to nothing, which comes after all that it has left."""
    started = time.perf_counter()
    worker.ask(Prepare(), timeout_s)
    return time.perf_counter() - started

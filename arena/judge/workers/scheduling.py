"""Choose how workers are scheduled, and check that one still is as the judge chose."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True)
class Choice:
    """The processors, the nice value and the policy of every thread of a worker: those of the judge itself."""

    processors: frozenset[int]
    nice: int
    policy: int


def usable() -> tuple[int, ...]:
    """Return the processors of this thread, no more of them than its control group has processor time for."""
    processors = sorted(os.sched_getaffinity(0))
    return tuple(processors[: max(1, min(len(processors), _quota()))])


def _quota() -> int:
    with suppress(OSError, ValueError):  # "max" is no number
        most_us, period_us = map(int, _QUOTA.read_text(encoding="ascii").split())
        return most_us // period_us
    return sys.maxsize


@contextmanager
def on(processor: int) -> Iterator[None]:
    """While this lasts, this thread is on one processor, and so are workers that it asks for, these for good."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def choose(process: int) -> Choice:
    """Have a new worker, whose threads are still to come, run where this thread may; say what holds from now on."""
    choice = Choice(frozenset(os.sched_getaffinity(0)), os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))
    with suppress(OSError):  # it has ended
        os.sched_setaffinity(process, choice.processors)
    return choice


def difference(process: int, choice: Choice, *, exactly: bool) -> str:
    """Return what of a worker's threads is not as chosen; empty where all is, or the worker is gone.

    Unless `exactly`, fewer processors and a lower priority are no difference.
    """
    with suppress(OSError):
        for name in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208
            with suppress(ProcessLookupError):
                found = _difference(int(name), choice, exactly=exactly)
                if found:
                    return found
    return ""


def _difference(thread: int, choice: Choice, *, exactly: bool) -> str:
    processors = os.sched_getaffinity(thread)
    if (processors != choice.processors) if exactly else (processors - choice.processors):
        return f"processors {_listed(processors)} instead of {_listed(choice.processors)}"
    nice = os.getpriority(os.PRIO_PROCESS, thread)
    if (nice != choice.nice) if exactly else (nice < choice.nice):
        return f"nice value {nice} instead of {choice.nice}"
    policy = os.sched_getscheduler(thread)
    if exactly and policy != choice.policy:
        return f"scheduling policy {policy} instead of {choice.policy}"
    return ""


def _listed(processors: set[int] | frozenset[int]) -> str:
    return ",".join(map(str, sorted(processors)))

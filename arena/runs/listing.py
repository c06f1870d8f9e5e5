"""The runs in a folder, a line each: how far, where, what they cost. Used by `arena runs`."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from arena.errors import ArenaError
from arena.runs.records import HEAD, LOCK, read_run


class RunState(StrEnum):
    """How far a run is."""

    RUNNING = "running"
    """a process writes it"""
    FINISHED = "finished"
    """every planned trial has a record"""
    STOPPED = "stopped"
    """trials are missing, and no process writes it"""
    UNREADABLE = "unreadable"
    """its head or a record cannot be read"""


@dataclass(frozen=True)
class ListedRun:
    """One run folder. `cost_usd` and `minutes` are of its trials so far; `problem` says why it cannot be read."""

    run: str
    state: RunState
    recorded: int = 0
    planned: int = 0
    agents: tuple[str, ...] = ()
    tasks: int = 0
    device: str = ""
    started_at: str = ""
    minutes: float = 0.0
    cost_usd: float = 0.0
    problem: str = ""


def list_runs(folder: Path) -> list[ListedRun]:
    """Return the runs below a folder, the newest first; those that cannot be read come last."""
    heads = sorted(folder.glob(f"*/{HEAD}"))
    found = [_listed(head.parent) for head in heads]
    return sorted(found, key=lambda one: one.started_at, reverse=True)


def _listed(run: Path) -> ListedRun:
    try:
        read = read_run(run)
    except ArenaError as problem:
        return ListedRun(run.name, RunState.UNREADABLE, problem=str(problem))
    info = read.info
    state = RunState.RUNNING if _is_written(run) else RunState.STOPPED if read.missing else RunState.FINISHED
    return ListedRun(
        run=run.name,
        state=state,
        recorded=len(read.trials),
        planned=len(info.planned),
        agents=info.agents,
        tasks=len(info.tasks),
        device=info.environment.device.name,
        started_at=info.started_at,
        minutes=sum(trial.seconds for trial in read.trials) / 60,
        cost_usd=sum(trial.session.cost_usd or 0.0 for trial in read.trials if trial.session is not None),
    )


def _is_written(run: Path) -> bool:
    """Return whether a process holds the lock of a run folder."""
    try:
        handle = os.open(run / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False

"""Stopping, continuing and ending a whole set of untrusted processes, which may start others meanwhile."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Set
from pathlib import Path

from arena.errors import InfrastructureError

STOP_WITHIN_S = 5.0
END_WITHIN_S = 10.0
_CLEAN_LOOKS = 2
_IDLE_STATES = frozenset("TtZXx")
Members = Callable[[], Set[int]]
"""Gives the ids of the processes of a set, as they are now."""


def all_processes() -> list[int]:
    """Every process that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def of_namespace(inode: int, kind: str = "pid") -> set[int]:
    """The processes of one namespace; those in namespaces nested in it are not among them.

    A box allows no nested ones where it can (`--disable-userns`); `descendants` of its first process finds the others.
    """
    found = set()
    for process in all_processes():
        try:
            if os.stat(f"/proc/{process}/ns/{kind}").st_ino == inode:  # noqa: PTH116
                found.add(process)
        except OSError:
            continue
    return found


def descendants(first: int) -> set[int]:
    """`first`, while it is there, and all that it and its children have started and not left to others."""
    parents = {process: parent for process in all_processes() if (parent := _parent(process))}
    children: dict[int, list[int]] = {}
    for process, parent in parents.items():
        children.setdefault(parent, []).append(process)
    found, waiting = set(), [first] if first in parents else []
    while waiting:
        process = waiting.pop()
        found.add(process)
        waiting += children.get(process, [])
    return found


def _stat(path: str) -> list[str]:
    """The fields of a `stat` file after the name, which may hold anything: state, parent, …; empty where it is gone."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            text = file.read().decode("ascii", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _parent(process: int) -> int:
    fields = _stat(f"/proc/{process}/stat")
    return int(fields[1]) if fields else 0


def runs(process: int, told: bool = False) -> bool:
    """Whether a thread of the process can still run: is neither stopped nor dead.

    `told`: SIGSTOP was sent already. A thread that waits in the kernel (state D) then counts as stopped, since it stops
    before it is back. One that waits in vfork for a child that has been stopped never comes back before that child.
    """
    try:
        threads = os.listdir(f"/proc/{process}/task")  # noqa: PTH208
    except OSError:
        return False
    states = (_stat(f"/proc/{process}/task/{thread}/stat") for thread in threads)
    idle = _IDLE_STATES | {"D"} if told else _IDLE_STATES
    return any(fields and fields[0] not in idle for fields in states)


def send(processes: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each; one that is gone already is fine."""
    for process in processes:
        try:
            os.kill(process, number)
        except (ProcessLookupError, PermissionError):
            continue


def stop_all(members: Members) -> set[int]:
    """SIGSTOP every member until none runs, and none does at a second look either; return those that were sent it.

    Raises `InfrastructureError` where they cannot be brought to stand still. A process that has a timer send it SIGCONT
    wakes again later; only a freezer (`arena.agents.box.cgroup`) holds that one.
    """
    deadline = time.monotonic() + STOP_WITHIN_S
    clean, stopped = 0, set[int]()
    while clean < _CLEAN_LOOKS:
        running = {process for process in members() if runs(process, process in stopped)}
        clean = 0 if running else clean + 1
        send(running, signal.SIGSTOP)
        stopped |= running
        if running and time.monotonic() > deadline:
            raise InfrastructureError(f"processes of the agent cannot be stopped: {sorted(running)[:8]}")
        if running:
            time.sleep(0.0005)
    return stopped


def kill_all(members: Members) -> None:
    """SIGKILL every member until there is none. Raises `InfrastructureError` where some survive."""
    deadline = time.monotonic() + END_WITHIN_S
    while left := {process for process in members() if not is_dead(process)}:
        send(left, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise InfrastructureError(f"processes of the agent cannot be ended: {sorted(left)[:8]}")
        time.sleep(0.001)


def is_dead(process: int) -> bool:
    """Whether a process is gone, or is a zombie that only waits to be collected by its parent."""
    fields = _stat(f"/proc/{process}/stat")
    return not fields or fields[0] in "ZXx"


def namespace_of(process: int, kind: str = "pid") -> int:
    """The inode number of the namespace that a process is in."""
    return Path(f"/proc/{process}/ns/{kind}").stat().st_ino

"""Stopping, continuing and ending a whole set of untrusted processes, which may start others meanwhile."""

from __future__ import annotations

import os
import signal
import time
import weakref
from collections.abc import Callable, Iterable, Set

from arena.errors import InfrastructureError
from arena.processes.process_table import all_processes, is_dead, thread_states

STOP_WITHIN_S = 5.0
END_WITHIN_S = 10.0
_CLEAN_SCANS = 2
_IDLE_STATES = frozenset("TtZXx")
Members = Callable[[], Set[int]]
"""Gives the ids of the processes of a set, as they are now."""


class Namespace:
    """The namespace that a process is in. Raises `OSError` where the process is gone.

    It is held open: the kernel gives the number of one that has ended to the next, which may be that of a candidate's
    worker, and whoever ends a box would end that.
    """

    def __init__(self, process: int, kind: str = "pid") -> None:
        self._kind = kind
        file = os.open(f"/proc/{process}/ns/{kind}", os.O_RDONLY)
        weakref.finalize(self, os.close, file)
        self.inode = os.fstat(file).st_ino

    def members(self) -> set[int]:
        """Its processes; those in namespaces nested in it are not among them.

        A box allows no nested ones where it can (`--disable-userns`); `descendants` of its first process, of
        `arena.processes.process_table`, finds the others.
        """
        found = set()
        for process in all_processes():
            try:
                if os.stat(f"/proc/{process}/ns/{self._kind}").st_ino == self.inode:  # noqa: PTH116
                    found.add(process)
            except OSError:
                continue
        return found


def runs(process: int, signalled: bool = False) -> bool:
    """Return whether a thread of the process can still run: is neither stopped nor dead.

    `signalled`: SIGSTOP was sent already. A thread that waits in the kernel (state D) then counts as stopped, since it
    stops before it is back. One that waits in vfork for a stopped child never comes back before that child.
    """
    idle = _IDLE_STATES | {"D"} if signalled else _IDLE_STATES
    return any(state not in idle for state in thread_states(process))


def send(processes: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each; one that is gone already is fine."""
    for process in processes:
        try:
            os.kill(process, number)
        except (ProcessLookupError, PermissionError):
            continue


def stop_all(members: Members) -> set[int]:
    """SIGSTOP every member until none runs, and a second check finds none either; return those that were sent it.

    Raises `InfrastructureError` where they cannot be brought to stand still. A process that has a timer send it SIGCONT
    wakes again later; only a freezer (`arena.processes.sandbox.cgroup`) holds that one.
    """
    deadline = time.monotonic() + STOP_WITHIN_S
    clean, stopped = 0, set[int]()
    while clean < _CLEAN_SCANS:
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

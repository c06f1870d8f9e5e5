"""Watches what a host takes of the machine: resident memory, its descendants' included, and room for its log.

A limit on address space would break CUDA, and a control group is not to be had everywhere; so a thread looks every
tenth of a second. What a host takes in between is not held, so the limit stays well below the machine's memory, and
the kernel is told to end hosts first should memory run out all the same.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from arena.judge.hosts import CandidateFailed, Host
from arena.model.verdict import Status
from arena.process import kill_group
from arena.process_table import children, start_time
from arena.protocol import FromHost, ToHost

INTERVAL_S = 0.1
LOG_LIMIT_BYTES = 64 << 20
_MEASURED_S = 1.0  # longer than a timed pass takes; one that takes longer is looked at again
_NOTE = b"[more than 64 MiB were printed: what came before this line was dropped]\n"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_FIRST_KILLED = "1000"


def memory_limit_bytes() -> int:
    """What one host may take by default: half of the memory that this machine, or our control group, has."""
    most = _PAGE_BYTES * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        most = min(most, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return most // 2


class Family:
    """A process and everything that was ever seen to descend from it, also what has left its session."""

    def __init__(self, root: int) -> None:
        self._born = {root: start_time(root)}

    def members(self) -> list[int]:
        """Those that live now, children that are new since the last look included."""
        self._born = {pid: born for pid, born in self._born.items() if born and start_time(pid) == born}
        fresh = list(self._born)
        while fresh:
            found = {child for pid in fresh for child in children(pid)} - set(self._born)
            born = {child: start_time(child) for child in found}
            fresh = [child for child in found if born[child]]
            self._born.update({child: born[child] for child in fresh})
        return list(self._born)

    def resident_bytes(self) -> int:
        """Memory that they hold, summed; pages that two of them share count twice."""
        return sum(_resident_bytes(pid) for pid in self.members())

    def kill(self) -> None:
        """SIGKILL them all."""
        for pid in self.members():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


class Watch:
    """Looks after one host from a thread of its own until it is ended. `verdict`: why it was killed, if it was."""

    def __init__(self, pid: int, most_bytes: int, log: int | None = None) -> None:
        self.verdict = ""
        self._pid, self._most_bytes, self._log = pid, most_bytes, log
        self._family = Family(pid)
        self._over = threading.Event()
        self._rests_until = 0.0
        with suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_text(_FIRST_KILLED, encoding="ascii")
        self._thread = threading.Thread(target=self._look_on, name=f"watch-{pid}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Look no longer, and kill what the host has left behind."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            self._family.kill()

    def rest(self, seconds: float) -> None:
        """Look at nothing for so long: what a look costs would stand in a measurement. 0: look again."""
        self._rests_until = time.monotonic() + seconds

    def _look_on(self) -> None:
        while not self._over.wait(INTERVAL_S):
            if time.monotonic() < self._rests_until:
                continue
            taken = self._family.resident_bytes()
            if taken > self._most_bytes:
                self.verdict = f"{_gib(taken)} of memory, at most {_gib(self._most_bytes)} is allowed"
                kill_group(self._pid)
                self._family.kill()
                return
            if self._log is not None:
                cut(self._log)


class WatchedHost(Host):
    """A host under watch: killed for too much memory, its end is `out_of_memory` rather than a crash."""

    def __init__(self, host: Host, most_bytes: int) -> None:
        """Takes the place of `host`, which is not used any more."""
        self._heard = host.isolation
        super().__init__(host._template, host._pid, host._channel, host._log, spins=host._spins)
        self._watch = Watch(self._pid, most_bytes, self._log.fileno())

    def _welcome(self) -> str:
        """It was said to the host whose place this takes."""
        return self._heard

    def _exchange(
        self, message: ToHost, timeout_s: float, files: Sequence[int] = (), *, timed: bool = False
    ) -> FromHost:
        if timed:
            self._watch.rest(_MEASURED_S)
        try:
            return super()._exchange(message, timeout_s, files, timed=timed)
        except CandidateFailed:
            if not self._watch.verdict:
                raise
            raise CandidateFailed(Status.OUT_OF_MEMORY, self._watch.verdict) from None
        finally:
            if timed:
                self._watch.rest(0.0)

    def kill(self) -> None:
        """End it and everything that descends from it, whatever session that is in."""
        super().kill()
        self._watch.end()


def cut(log: int) -> None:
    """Empty a log that has grown too long. Whoever writes it shares our place in it, and goes on at the beginning."""
    if os.fstat(log).st_size > LOG_LIMIT_BYTES:
        os.ftruncate(log, 0)
        os.lseek(log, 0, os.SEEK_SET)
        os.write(log, _NOTE)


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:.1f} GiB"

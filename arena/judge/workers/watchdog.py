"""Watches what a worker takes of the machine, its descendants included: memory, disk, threads, and room for its log.

A limit on address space would break CUDA, and a control group is not to be had everywhere; so a thread looks every
tenth of a second. What a worker takes in between is not held, so the limit stays well below the machine's memory, and
the kernel is told to end workers first should memory run out all the same.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from arena.judge.workers import scheduling
from arena.judge.workers.worker import CandidateFailed, Worker
from arena.processes.process import kill_group
from arena.processes.process_table import children, start_time, thread_states
from arena.processes.protocol import FromWorker, ToWorker
from arena.processes.sandbox.cgroup import ControlGroup
from arena.processes.sandbox.usage import UNMEASURABLE, deleted_bytes, folder_bytes, memory_file_bytes
from arena.results.messages import message
from arena.results.verdict import Status

INTERVAL_S = 0.1
LOG_LIMIT_BYTES = 64 << 20
DISK_LIMIT_BYTES = 2 << 30
"""what a worker may write: compiled kernels are a thousandth of it"""
MOST_THREADS = 4096
STOPPING_S = 1e-4
"""what threads that count as stopped may still take to leave their processors"""
FROZEN_S = 1e-3
"""in a frozen control group: the kernel wakes a process for each signal, a timer's too, and freezes it again before any
of its code runs, which took 0.11 ms in a second on a busy machine"""
_CPU_CLOCK = 2
"""of clock_getcpuclockid(3): by the scheduler's own account"""
_AT_REST = "TtZXx"
_STOPS_WITHIN_S = 0.05
_WALK_EVERY_S = 1.0
_MEASURED_S = 1.0  # longer than a timed pass takes; one that takes longer is sampled again
_NOTE = b"[more than 64 MiB were printed: what came before this line was dropped]\n"
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_FIRST_KILLED = "1000"


def memory_limit_bytes() -> int:
    """Return what one worker may take by default: half of the memory that this machine, or our control group, has."""
    most = _PAGE_BYTES * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        most = min(most, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return most // 2


class Taken(NamedTuple):
    """Memory and threads of a worker and its descendants. `memory`: also of open, unmapped files in memory."""

    memory: int
    threads: int


class _Seen(NamedTuple):
    private: int
    shared: int
    threads: int


class Family:
    """A process and everything that was ever seen to descend from it, also what has left its session."""

    def __init__(self, root: int) -> None:
        self._born = {root: start_time(root)}

    def members(self) -> list[int]:
        """Those that live now, children that are new since the last sample included."""
        self._born = {pid: born for pid, born in self._born.items() if born and start_time(pid) == born}
        fresh = list(self._born)
        while fresh:
            found = {child for pid in fresh for child in children(pid)} - set(self._born)
            born = {child: start_time(child) for child in found}
            fresh = [child for child in found if born[child]]
            self._born.update({child: born[child] for child in fresh})
        return list(self._born)

    def taken(self) -> Taken:
        """Return what they hold together; memory that two of them share counts twice."""
        members = self.members()
        seen = [_seen(pid) for pid in members]
        private, shared = sum(one.private for one in seen), sum(one.shared for one in seen)
        return Taken(private + max(shared, memory_file_bytes(members)), sum(one.threads for one in seen))

    def known(self) -> list[int]:
        """Those that were seen so far, ended ones among them: costs nothing."""
        return list(self._born)

    def kill(self) -> None:
        """SIGKILL them all."""
        for pid in self.members():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


class Watch:
    """Watch one worker from a thread of its own until it is ended. `verdict`: why it was killed, if it was."""

    def __init__(self, pid: int, most_bytes: int, log: int | None = None, folders: Sequence[Path] = ()) -> None:
        """`folders`: those that the worker may write, which have a limit together."""
        self.verdict = ""
        self.status = Status.OUT_OF_MEMORY
        self.group: ControlGroup | None = None
        """where a control group can be had, and once the worker is in it"""
        self._pid, self._most_bytes, self._log, self._folders = pid, most_bytes, log, folders
        self._walk_at = 0.0
        self._family = Family(pid)
        self._over = threading.Event()
        self._rests_until = 0.0
        with suppress(OSError):
            Path(f"/proc/{pid}/oom_score_adj").write_text(_FIRST_KILLED, encoding="ascii")
        self._thread = threading.Thread(target=self._watch, name=f"watch-{pid}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Look no longer, and kill what the worker has left behind."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            self._family.kill()

    def rest(self, seconds: float) -> None:
        """Pause for so long: a sample would disturb a measurement. 0: resume."""
        self._rests_until = time.monotonic() + seconds

    def known(self) -> list[int]:
        """The worker and its descendants as of the last sample."""
        return self._family.known()

    def _watch(self) -> None:
        # The kernel may take 15 ms to move a process: longer than all other preparations of a worker.
        self.group = ControlGroup.hold(self._pid, MOST_THREADS)
        while not self._over.wait(INTERVAL_S):
            if time.monotonic() < self._rests_until:
                continue
            self._judge_sample()
            if self.verdict:
                kill_group(self._pid)
                self._family.kill()
                return
            if self._log is not None:
                cut(self._log)

    def _judge_sample(self) -> None:
        """Judge one sample; what cannot be sampled does not go on unwatched."""
        try:
            self._judge(self._family.taken())
        except Exception as problem:  # of this thread nobody would hear
            self.status = Status.CRASH
            self.verdict = message("not_watched", problem=f"{type(problem).__name__}: {problem}")

    def _judge(self, taken: Taken) -> None:
        if taken.memory > self._most_bytes:
            self.verdict = message("memory_limit", used_gib=_gib(taken.memory), allowed_gib=_gib(self._most_bytes))
        elif taken.threads > MOST_THREADS:
            self.status = Status.CRASH
            self.verdict = message("thread_limit", used=taken.threads, allowed=MOST_THREADS)
        elif time.monotonic() >= self._walk_at:
            self._walk_at = time.monotonic() + _WALK_EVERY_S
            written = folder_bytes(self._folders) + deleted_bytes(self.known(), self._folders)
            if written > DISK_LIMIT_BYTES:
                self.status = Status.CRASH
                allowed_gib = _gib(DISK_LIMIT_BYTES)
                if written < UNMEASURABLE:
                    self.verdict = message("disk_limit", used_gib=_gib(written), allowed_gib=allowed_gib)
                else:
                    self.verdict = message("folder_unreadable", allowed_gib=allowed_gib)


class WatchedWorker(Worker):
    """A worker under watch: killed for too much memory, its end is `out_of_memory` rather than a crash."""

    def __init__(self, worker: Worker, most_bytes: int, folders: Sequence[Path] = ()) -> None:
        """Take the place of `worker`, which is not used any more."""
        self._isolation_said = worker.isolation
        self._frozen = False
        self._chosen = scheduling.choose(worker._pid)
        super().__init__(worker._fork_server, worker._pid, worker._channel, worker._log, worker._flags)
        self._watch = Watch(self._pid, most_bytes, self._log.fileno(), folders)

    def _welcome(self) -> str:
        """Return what the worker said whose place this takes."""
        return self._isolation_said

    def _exchange(
        self, command: ToWorker, timeout_s: float, files: Sequence[int] = (), *, timed: bool = False
    ) -> FromWorker:
        if timed:
            self._watch.rest(_MEASURED_S)
        try:
            return super()._exchange(command, timeout_s, files, timed=timed)
        except CandidateFailed:
            if not self._watch.verdict:
                raise
            raise CandidateFailed(self._watch.status, self._watch.verdict) from None
        finally:
            if timed:
                self._watch.rest(0.0)

    def stop(self) -> None:
        """Freeze its control group, where there is one: a frozen process is woken by no signal."""
        group = self._watch.group
        if group is None or self._stopped:
            super().stop()
        else:
            group.freeze()
            self._stopped = self._frozen = True

    def resume(self) -> None:
        """Let it run again, however it was stopped."""
        if self._frozen and self._watch.group is not None:
            self._watch.group.thaw()
            self._stopped = self._frozen = False
        super().resume()

    def processor_s(self) -> float:
        """Return the processor seconds that it has taken, its descendants' included, once it has come to rest."""
        if not self._frozen:
            _await_stop(self._watch.known())
        return sum(_processor_s(pid) for pid in self._watch.known())

    @contextmanager
    def still(self) -> Iterator[None]:
        """Hold that it does not run meanwhile, stopped as it is: `CandidateFailed` where it took processor time."""
        if not self._frozen:
            _await_stop(self._watch.known())
        before = {pid: _processor_s(pid) for pid in self._watch.known()}
        yield
        ran_s = sum(_processor_s(pid) - seconds for pid, seconds in before.items())
        allowed_s = FROZEN_S if self._frozen else STOPPING_S
        if ran_s > allowed_s:
            detail = message("ran_while_stopped", found_ms=ran_s * 1e3, allowed_ms=allowed_s * 1e3)
            raise CandidateFailed(Status.TIMING_MISMATCH, detail)

    def moved(self, *, exactly: bool) -> str:
        """Return how a thread of it is scheduled otherwise than the judge chose; empty where none is.

        Unless `exactly`, it may hold itself back: use fewer processors, and a lower priority.
        """
        return scheduling.difference(self._pid, self._chosen, exactly=exactly)

    def kill(self) -> None:
        """End it and everything that descends from it, whatever session that is in."""
        super().kill()
        self._watch.end()

    def kill_worker(self) -> None:
        """Kill it, and remove its control group, which is empty then."""
        super().kill_worker()
        if self._watch.group is not None:
            self._watch.group.remove()


def cut(log: int) -> None:
    """Empty a log that has grown too long. Whoever writes it shares our place in it, and goes on at the beginning."""
    if os.fstat(log).st_size > LOG_LIMIT_BYTES:
        os.ftruncate(log, 0)
        os.lseek(log, 0, os.SEEK_SET)
        os.write(log, _NOTE)


def _await_stop(processes: Sequence[int]) -> None:
    """A signal takes a moment to stop a thread, longer on a busy machine; one in the kernel's hands may take longer."""
    deadline = time.monotonic() + _STOPS_WITHIN_S
    while any(state not in _AT_REST for pid in processes for state in thread_states(pid)):
        if time.monotonic() > deadline:
            return
        time.sleep(0.0002)


def _processor_s(pid: int) -> float:
    """Processor time of a process, ended threads included, in nanoseconds' resolution; 0 where it is gone."""
    with suppress(OSError):
        return time.clock_gettime(~pid << 3 | _CPU_CLOCK)
    return 0.0


def _seen(pid: int) -> _Seen:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return _Seen(0, 0, 0)
    fields = dict(line.split(":", 1) for line in lines if line.startswith(("Rss", "Threads")))
    value = {name: int(text.split()[0]) for name, text in fields.items()}
    private = value.get("RssAnon", 0) + value.get("RssFile", 0)
    return _Seen(private << 10, value.get("RssShmem", 0) << 10, value.get("Threads", 0))


def _gib(num_bytes: int) -> float:
    return num_bytes / 2**30

"""A program under evaluation and the host it lives in: started when first needed, replaced when dead."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from arena.errors import InfrastructureError
from arena.judge.watchdog import WatchedWorker, memory_limit_bytes
from arena.judge.workers import ForkServers, WorkerFolder
from arena.model.task import Case, Task
from arena.protocol import Language, Load, Prepare
from arena.scratch import prefix as scratch_prefix
from arena.scratch import remove
from arena.toolchains.base import NativeWorker
from arena.toolchains.task_header import dtype_key


@dataclass(frozen=True)
class Program:
    """What a host loads: one file under the key `""`, or one library for each tuple of dtypes."""

    task: Task
    language: Language
    files: Mapping[str, Path]
    copies: tuple[str, ...] = ()
    target: str = ""
    once: bool = False
    worker: NativeWorker | None = None
    """what loads it, where that is not Python"""

    def key(self, case: Case) -> str:
        """Which of its files a case needs."""
        return "" if "" in self.files else dtype_key(self.task, case)

    def load_message(self, key: str, folder: Path) -> Load:
        """How a host is told to load it, from a copy in this folder."""
        copy = Path(tempfile.mkdtemp(dir=folder)) / self.files[key].name
        shutil.copyfile(self.files[key], copy)
        return Load(self.language, str(copy), self.task.entry, self.copies, self.target, self.once)


class WorkerProgram:
    """A program with at most one live host. The host may be started while the program is still being built."""

    def __init__(
        self,
        template: ForkServers,
        cache: Path | None,
        hide: tuple[Path, ...],
        timeout_s: float,
        memory_bytes: int | None = None,
        worker: NativeWorker | None = None,
    ) -> None:
        """`memory_bytes`: what its hosts may take, half of the machine's if None.

        `worker`: what will load a program that is not there yet.
        """
        self._program: Program | None = None
        self._worker, self._profiled = worker, False
        self._memory_bytes = memory_bytes or memory_limit_bytes()
        self._template, self._hide, self._timeout_s = template, hide, timeout_s
        self._home = Path(tempfile.mkdtemp(prefix=scratch_prefix("host")))
        self._folder = Path(tempfile.mkdtemp(prefix=scratch_prefix("program")))
        self._cache = cache or self._home / "triton"
        self._host: WatchedWorker | None = None
        self._loaded: str | None = None
        self.isolation = ""

    @property
    def program(self) -> Program:
        """What is loaded."""
        if self._program is None:
            raise InfrastructureError("there is no program yet")
        return self._program

    def adopt(self, program: Program) -> WorkerProgram:
        """Say what to load; returns itself."""
        self._program, self._worker = program, program.worker
        return self

    def warm(self) -> None:
        """Start the host and have it wake the device, which takes a while and needs no program."""
        self._started().ask(Prepare(), self._timeout_s)

    @property
    def host(self) -> WatchedWorker:
        """The live host."""
        if self._host is None:
            raise InfrastructureError("no host is running")
        return self._host

    def ready_for_profiler(self, case: Case) -> WatchedWorker:
        """A new host, in which PyTorch's profiler can look on, with what the case needs loaded. Raises as `ready`."""
        self.close()
        self._profiled = True
        return self.ready(case)

    def ready(self, case: Case) -> WatchedWorker:
        """A live host with what the case needs loaded. Raises `CandidateFailed` where that does not load."""
        host = self._started()
        key = self.program.key(case)
        if self._loaded != key:
            host.ask(self.program.load_message(key, self._folder), self._timeout_s)
            self._loaded = key
        return host

    def _started(self) -> WatchedWorker:
        if self._host is None:
            worker = None if self._profiled else self._worker
            host = self._template.spawn(WorkerFolder(self._home, self._cache, self._folder, worker), self._hide)
            self._host = WatchedWorker(host, self._memory_bytes, (self._home,))
            self.isolation = self._host.isolation
        return self._host

    def close(self) -> None:
        """Kill the host, if there is one; the next `ready` starts another."""
        if self._host is not None:
            self._host.bury()
            self._host = None
        self._loaded = None
        self._profiled = False

    def discard(self) -> None:
        """Kill the host and delete everything it wrote."""
        self.close()
        for folder in (self._home, self._folder):
            remove(folder)

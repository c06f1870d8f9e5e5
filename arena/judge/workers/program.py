"""A program under evaluation and the worker it lives in: started when first needed, replaced when dead."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from arena.errors import InfrastructureError
from arena.judge.workers.watchdog import WatchedWorker, memory_limit_bytes
from arena.judge.workers.worker import ForkServers, WorkerFolder
from arena.platforms.toolchains.base import NativeWorker
from arena.platforms.toolchains.build_cache import make_folder
from arena.platforms.toolchains.hip_build import default_cache_root
from arena.platforms.toolchains.task_header import dtype_key
from arena.processes.protocol import Language, Load, Prepare, Spawn
from arena.processes.scratch import prefix as scratch_prefix
from arena.processes.scratch import remove, require_executable
from arena.task.definition import Case, Task


@dataclass(frozen=True)
class Program:
    """The files that a worker loads: one under the key `""`, or one library for each tuple of dtypes."""

    task: Task
    language: Language
    files: Mapping[str, Path]
    copies: tuple[str, ...] = ()
    target: str = ""
    once: bool = False
    ahead: bool = False
    disassembler: Path | None = None
    """with which machine code for the target is executed on the CPU, where that is wanted"""
    beside: tuple[Path, ...] = ()
    """files that a worker finds in the folder of the one that it loads"""
    native_worker: NativeWorker | None = None
    """what loads it, where that is not Python"""
    extensions: Mapping[str, Path] = field(default_factory=dict)
    """libraries of a module's extensions, by the keys of what they were made of"""

    def key(self, case: Case) -> str:
        """Return which of its files a case needs."""
        return "" if "" in self.files else dtype_key(self.task, case)

    def load_message(self, key: str, folder: Path) -> Load:
        """Return how a worker is told to load it, from a copy in this folder."""
        copy = Path(tempfile.mkdtemp(dir=folder)) / self.files[key].name
        for file in (self.files[key], *self.beside):
            shutil.copyfile(file, copy.with_name(file.name))
        extensions = {key: str(copy.with_name(f"{key}.so")) for key in self.extensions}
        for key, library in self.extensions.items():
            shutil.copyfile(library, extensions[key])
        return Load(
            self.language,
            str(copy),
            self.task.entry,
            self.copies,
            self.target,
            self.once,
            self.ahead,
            str(self.disassembler or ""),
            self.task.takes_modules,
            self.task.takes_metadata,
            extensions,
        )


class WorkerProgram:
    """A program with at most one live worker. The worker may be started while the program is still being built."""

    def __init__(
        self,
        fork_servers: ForkServers,
        cache: Path | None,
        hide: tuple[Path, ...],
        timeout_s: float,
        memory_bytes: int | None = None,
        native_worker: NativeWorker | None = None,
        *,
        modules: bool = False,
    ) -> None:
        """`cache`: where its compiled Triton kernels are kept; None: with the rest of what its workers write.

        `memory_bytes`: what its workers may take, half of the machine's if None. `native_worker`: what will load a
        program that is not there yet. `modules`: whether it may hold modules.
        """
        self._program: Program | None = None
        self._native_worker, self._profiled, self._modules = native_worker, False, modules
        self._memory_bytes = memory_bytes or memory_limit_bytes()
        self._fork_servers, self._hide, self._timeout_s = fork_servers, hide, timeout_s
        self._home = Path(tempfile.mkdtemp(prefix=scratch_prefix("worker")))
        self._folder = Path(tempfile.mkdtemp(prefix=scratch_prefix("program")))
        self._cache = cache or self._home / "triton"
        self._worker: WatchedWorker | None = None
        self._loaded: str | None = None
        self.isolation = ""

    @property
    def program(self) -> Program:
        """Return what is loaded."""
        if self._program is None:
            raise InfrastructureError("there is no program yet")
        return self._program

    def adopt(self, program: Program) -> WorkerProgram:
        """Say what to load; returns itself."""
        self._program, self._native_worker = program, program.native_worker
        return self

    def warm(self) -> None:
        """Start the worker and have it wake the device, which takes a while and needs no program."""
        self._started().ask(Prepare(), self._timeout_s)

    @property
    def worker(self) -> WatchedWorker:
        """The live worker."""
        if self._worker is None:
            raise InfrastructureError("no worker is running")
        return self._worker

    def ready_for_profiler(self, case: Case) -> WatchedWorker:
        """A new worker, in which PyTorch's profiler can run, with what the case needs loaded. Raises as `ready`."""
        self.close()
        self._profiled = True
        return self.ready(case)

    def ready(self, case: Case) -> WatchedWorker:
        """A live worker with what the case needs loaded. Raises `CandidateFailed` where that does not load."""
        if self.program.language is Language.HIP or self.program.extensions:
            require_executable(self._folder)
        worker = self._started()
        key = self.program.key(case)
        if self._loaded != key:
            load = structs.replace(
                self.program.load_message(key, self._folder), keeps_choices=self._cache != triton_cache()
            )
            worker.ask(load, self._timeout_s)
            self._loaded = key
        return worker

    def elsewhere(self, case: Case, home: Path) -> tuple[Spawn, Load]:
        """Return what a worker of Python would be told, for a process that something else starts, with this home."""
        load = self.program.load_message(self.program.key(case), self._folder)
        return Spawn(str(home), str(self._cache), tuple(map(str, self._hide)), (str(self._folder),)), load

    def _started(self) -> WatchedWorker:
        if self._worker is None:
            native_worker = None if self._profiled else self._native_worker
            shared = self._cache == triton_cache()  # with others, whose kernels are not this worker's
            if shared:
                make_folder(self._cache)
            worker = self._fork_servers.spawn(
                WorkerFolder(self._home, self._cache, self._folder, native_worker, self._modules), self._hide
            )
            self._worker = WatchedWorker(worker, self._memory_bytes, (self._home, *(() if shared else (self._cache,))))
            self.isolation = self._worker.isolation
        return self._worker

    def kill(self) -> None:
        """Kill the worker, if there is one, and do not wait for its end: `close` or `discard` must follow."""
        if self._worker is not None:
            self._worker.kill()

    def close(self) -> None:
        """Kill the worker, if there is one; the next `ready` starts another."""
        if self._worker is not None:
            self._worker.kill_worker()
            self._worker = None
        self._loaded = None
        self._profiled = False

    def discard(self) -> None:
        """Kill the worker and delete everything it wrote."""
        self.close()
        for folder in (self._home, self._folder):
            remove(folder)


def triton_cache() -> Path:
    """Return the cache of the tasks' own Triton kernels: they are trusted, and share what fits several.

    Triton finds things there by what they were made of.
    """
    return default_cache_root().parent / "triton"

"""Triton kernels compiled before they are needed, in confined workers without a device, several side by side.

In: a kernel, its cases, and a folder. Out: the folder holds what Triton made, which finds it there by its content when
a worker with that folder for a cache launches; and the failure of a candidate that is sure to fail on a device too.

What runs here is the candidate's own Python. So a folder serves one candidate and one split, the workers are thrown
away, and those that are given held-out cases never see a folder that the seen ones will.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from arena.judge.compile.cross_compile import CrossCompilation, KnownIndices, Limit, arguments_only
from arena.judge.workers import scheduling
from arena.judge.workers.program import Program, WorkerProgram
from arena.judge.workers.worker import CandidateFailed, ForkServers
from arena.platforms.cross import triton as triton_cross
from arena.platforms.toolchains.targets import TARGETS
from arena.processes.protocol import Call, Language, Prepare
from arena.results.verdict import Status
from arena.task.definition import Case, Task
from arena.task.numerics.reference import Reference

_CORES_A_WORKER = 4
"""of one kernel: others are compiled at the same time"""
_LEFT_CORES = 2
"""for the judge and the worker that it times, which also come before compilers in the system's queue"""


@dataclass(frozen=True)
class TritonKernel:
    """A file of Triton kernels for a task, and the architecture to compile it for."""

    task: Task
    file: Path
    target: str
    extensions: Mapping[str, Path] = field(default_factory=dict)
    """as a program has them"""


class AheadCompiler:
    """Compiles Triton kernels without a device. Thread-safe: all that ask share the processors.

    Each worker has a processor of its own, which it cannot leave: threads that a candidate starts take no more.
    """

    def __init__(self, cross_compilation: CrossCompilation) -> None:
        """`cross_compilation`: has the processes that workers come from."""
        self._cross_compilation = cross_compilation
        usable = scheduling.usable()
        self._free: SimpleQueue[int] = SimpleQueue()
        for processor in usable[: max(1, len(usable) - _LEFT_CORES)]:
            self._free.put(processor)
        self._indices = KnownIndices()
        self._most_workers = max(1, len(usable) // _CORES_A_WORKER)

    def compile(
        self, kernel: TritonKernel, cases: Sequence[Case], limit: Limit, cache: Path | None, over: threading.Event
    ) -> CandidateFailed | None:
        """Have a kernel launch on every case, on no device, so that Triton compiles what it launches.

        Args:
            kernel: what is compiled.
            cases: what it is called on.
            limit: seconds of one call, and the folders that are hidden.
            cache: where Triton keeps what it compiles; None: nothing is kept.
            over: no further case is begun once this is set.

        Returns:
            A failure that a device would not mend: Triton refuses a kernel, or the file does not load in time. None
            says nothing: whatever else goes wrong may do so for want of a device.
        """
        if kernel.target not in TARGETS or triton_cross.missing(kernel.target):
            return None
        queue = _CaseQueue(kernel, cases, over, self._indices)
        count = max(1, min(len(cases), self._most_workers))
        fork_servers = self._cross_compilation.fork_servers

        def work(_: int) -> None:
            processor = self._free.get()
            try:
                queue.work(fork_servers, limit, cache, processor)
            finally:
                self._free.put(processor)

        with ThreadPoolExecutor(max_workers=count) as pool:
            list(pool.map(work, range(count)))
        return queue.failure


class _CaseQueue:
    """The cases of one kernel, and the workers that take them one by one."""

    def __init__(
        self, kernel: TritonKernel, cases: Sequence[Case], over: threading.Event, indices: KnownIndices
    ) -> None:
        self._task, self._indices = kernel.task, indices
        files, target = {"": kernel.file}, kernel.target
        self._program = Program(
            self._task, Language.TRITON, files, target=target, ahead=True, extensions=kernel.extensions
        )
        self._reference = Reference(self._task.reference_path)
        self._waiting, self._over = deque(cases), over
        self.failure: CandidateFailed | None = None

    def work(self, fork_servers: ForkServers, limit: Limit, cache: Path | None, processor: int) -> None:
        """Compile until no case is left, or one has failed: what comes after a failure may hang as long again.

        The worker has one `processor`.
        """
        worker_program = WorkerProgram(fork_servers, cache, limit.hide, limit.timeout_s).adopt(self._program)
        loaded = False
        try:
            while case := self._next():
                with scheduling.on(processor):  # where a worker stays that is started now
                    worker_program.ready(case)
                loaded = True
                self._launch(worker_program, case, limit.timeout_s)
        except CandidateFailed as failure:
            never_loaded = failure.status is Status.TIMEOUT and not loaded
            if never_loaded or failure.status is Status.COMPILE_ERROR:
                self.failure = self.failure or failure
            self._waiting.clear()
        finally:
            worker_program.discard()

    def _next(self) -> Case | None:
        try:
            return None if self._over.is_set() else self._waiting.popleft()
        except IndexError:
            return None

    def _launch(self, worker_program: WorkerProgram, case: Case, timeout_s: float) -> None:
        sets = arguments_only(self._task, case, self._reference, self._indices)
        try:
            worker = worker_program.worker
            worker.ask(sets.bind_message(), timeout_s, sets.files)
            worker.ask(Prepare(), timeout_s)
            worker.ask(Call(0), timeout_s)
            worker.release(timeout_s)
        finally:
            sets.close()

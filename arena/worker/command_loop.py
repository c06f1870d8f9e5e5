"""The worker's loop: obey the judge, one message at a time, and say honestly what went wrong.

Honesty is not relied upon: a worker can only make its own candidate fail. What it computes is in the shared buffers.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace

from arena.platforms.base import Platform
from arena.platforms.cpu.triton.launch_order import launch_order
from arena.processes.flags import Flags
from arena.processes.printable import printable
from arena.processes.protocol import (
    DETAIL_CHARACTERS,
    MOST_KERNELS,
    NAME_CHARACTERS,
    Arrange,
    Bind,
    Blame,
    Call,
    CopyBack,
    CopyHalf,
    Done,
    ExtensionWanted,
    Failed,
    FromWorker,
    Handle,
    Kernels,
    Language,
    Linger,
    Load,
    LoadConstants,
    Pass,
    Prepare,
    Profiled,
    ProfileRequest,
    Release,
    ReportKernels,
    ToWorker,
)
from arena.processes.sandbox import confinement
from arena.processes.wire import Channel, ChannelClosed, ChannelTimeout
from arena.results.portability import most_used
from arena.worker import extensions
from arena.worker.binding import Binding
from arena.worker.loaders import Entry, blame, load
from arena.worker.passes import GraphPass, PlainPass, TimedPass
from arena.worker.profiling import profiled
from arena.worker.tracebacks import explain, refuses

_ALERT_S = 0.02


class CommandLoop:
    """One candidate, the buffers of the current case, and nothing else."""

    def __init__(self, channel: Channel[FromWorker, ToWorker], platform: Platform, flags: Flags | None = None) -> None:
        """`flags`: by which passes are timed; None where messages do."""
        self._channel, self._flags = channel, flags
        self._platform = platform
        self._entry: Entry | None = None
        self._path = ""
        self._binding: Binding | None = None
        self._passes: dict[str, TimedPass] = {}
        self._rehearsal: TimedPass | None = None
        self._alert = False

    def run(self) -> int:
        """Serve until the judge closes the channel; returns the exit code."""
        while True:
            try:
                message, files = self._next()
            except ChannelClosed:
                return 0
            answer = self._answer(message, files)
            if answer is not None:
                self._channel.send(answer)
            self._alert = isinstance(message, Prepare) and self._platform.spins

    def _next(self) -> tuple[ToWorker, list[int]]:
        """The next command; right after `Prepare` it is a timed one, and worth staying awake for."""
        if self._alert:
            with contextlib.suppress(ChannelTimeout):
                return self._channel.receive(_ALERT_S, spins=True)
        return self._channel.receive(None)

    def _answer(self, message: ToWorker, files: list[int]) -> FromWorker | None:
        """None where flags have said it."""
        try:
            if self._flags is not None and isinstance(message, Pass):
                self._flags.run(self._passes[message.name].run)
                return None
            answer = self._obey(message, files)
            return extensions.wanted() or answer  # a candidate may have caught what it was told
        except extensions.NotBuilt as lack:
            return ExtensionWanted(lack.extension)
        except Exception as problem:
            if (asked := extensions.wanted()) is not None:
                return asked
            kind = self._blame(problem, message)
            return Failed(kind, printable(explain(problem, self._path))[-DETAIL_CHARACTERS:])

    def _blame(self, problem: Exception, message: ToWorker) -> Blame:
        if _in_capture(message):
            return Blame.NOT_CAPTURABLE
        kind = blame(problem, loading=isinstance(message, Load | LoadConstants))
        general = kind in (Blame.LAUNCH_ERROR, Blame.LOAD_ERROR) and not isinstance(message, Load)
        return Blame.REFUSED if general and refuses(problem, self._path) else kind

    def _obey(self, message: ToWorker, files: list[int]) -> FromWorker:
        worker_s = 0.0
        match message:
            case Pass(name=name):
                worker_s = self._passes[name].run()
            case ReportKernels():
                uses = [replace(use, kernel=use.kernel[:NAME_CHARACTERS]) for use in self._loaded.kernels()]
                return Kernels(most_used(tuple(uses))[:MOST_KERNELS])
            case ProfileRequest(set=index):
                return Profiled(profiled(self._loaded, index, self._platform))
            case Load():
                self._load(message)
            case Bind() | Release() | CopyHalf():
                self._release()
                self._bind(message, files)
            case LoadConstants():
                self._loaded.load_constants()
                self._platform.synchronize()
            case Call(set=index, order=order):
                with launch_order(order):
                    self._loaded.call(index)
                self._loaded.copy_back(index)
                self._platform.synchronize()
            case Arrange():
                self._passes[message.name] = self._arrange(message)
            case Prepare() | Linger():
                self._prepare(message)
            case CopyBack(name=name):
                for index in self._passes[name].sets:
                    self._loaded.copy_back(index)
                self._platform.synchronize()
        return Done(worker_s)

    def _load(self, message: Load) -> None:
        """Load the program; one for which no compiler is called starts no process and no other program from here on."""
        if not _compiles(message):
            confinement.refuse_processes()
        self._path = message.path
        self._platform.fix_local_memory()
        self._entry = load(message, self._platform.torch_device)

    def _bind(self, message: Bind | Release | CopyHalf, files: list[int]) -> None:
        """Map the buffers of a case; after the last one there are none."""
        file = files[0] if files else None
        if isinstance(message, Release):
            self._platform.free_cache()
            return
        if isinstance(message, CopyHalf):
            self._copy_half(message.handle, file)
            return
        self._binding = Binding(message, self._platform, file)
        self._loaded.bind(self._binding)

    def _copy_half(self, handle: Handle, file: int | None) -> None:
        buffer = self._platform.open(handle, file)
        half = handle.num_bytes // 2
        buffer.tensor[half:].copy_(buffer.tensor[:half])
        self._platform.synchronize()
        buffer.close()

    def _prepare(self, message: Prepare | Linger) -> None:
        if isinstance(message, Linger):
            self._platform.linger(message.cycles)
            return
        self._platform.fix_local_memory()
        if self._binding is not None:
            self._binding.resolve_addresses()
        self._platform.launch_tiny_kernel()
        if self._rehearsal is not None:
            self._rehearsal.run()

    @property
    def _loaded(self) -> Entry:
        if self._entry is None:
            raise RuntimeError("nothing is loaded")
        return self._entry

    def _arrange(self, message: Arrange) -> TimedPass:
        """A pass; and, beside the first, one of next to nothing, by which the way to the device is gone beforehand."""
        platform = self._platform
        kind: type[GraphPass] | type[PlainPass] = GraphPass if message.graph else PlainPass
        if self._rehearsal is None:
            platform.launch_tiny_kernel()
            self._rehearsal = kind(lambda _: platform.touch(), platform, (0,))
        return kind(self._loaded.call, platform, message.sets)

    def _release(self) -> None:
        self._passes.clear()
        if self._entry is not None:
            self._entry.bind(None)
        if self._binding is not None:
            self._platform.synchronize()
            self._binding.close()
            self._binding = None


def _compiles(message: Load) -> bool:
    """Return whether loading or calling it may call a compiler or a disassembler, which is another process."""
    if message.disassembler:
        return True
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return message.language is not Language.HIP and not (message.language is Language.TRITON and interpreted)


def _in_capture(message: ToWorker) -> bool:
    return isinstance(message, Arrange) and message.graph

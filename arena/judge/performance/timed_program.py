"""One side of a comparison: a program, its worker, and the buffers of the case being timed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena.judge.correctness.buffers import EVERY, Sets, has_addresses
from arena.judge.correctness.inputs import draw_constants, draw_secret
from arena.judge.performance.spots import Spots
from arena.judge.performance.waits import LONG, SHORT, SINGLE, Waits
from arena.judge.workers.constants import load_constants
from arena.judge.workers.program import WorkerProgram
from arena.judge.workers.watchdog import WatchedWorker
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.base import Platform, SharedBuffer
from arena.processes.protocol import Arrange, Blame, Call, CopyBack, Pass, Prepare
from arena.results.record import Mode
from arena.task.definition import Arguments
from arena.task.numerics.reference import Reference

if TYPE_CHECKING:
    import torch

_REHEARSALS = 2


@dataclass(frozen=True)
class PassPlan:
    """The calls of the passes of a round. A set is used by one pass of a round only."""

    short: int
    long: int

    @property
    def sets(self) -> int:
        """Distinct sets a round needs, the one of the single call included."""
        return self.short + self.long + len(self.indices(SINGLE))

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes of every round; one of no calls is not run."""
        return (SHORT, LONG) if self.short else (LONG,)

    def indices(self, name: str) -> tuple[int, ...]:
        """The sets of one pass, in call order; where nothing is subtracted there is no single call."""
        first = {LONG: 0, SHORT: self.long, SINGLE: self.long + self.short}[name]
        count = {LONG: self.long, SHORT: self.short, SINGLE: min(self.short, 1)}[name]
        return tuple(range(first, first + count))

    def part(self, name: str) -> slice:
        """The same as a slice of all sets."""
        indices = self.indices(name)
        return slice(indices[0], indices[-1] + 1) if indices else slice(0, 0)


class TimedProgram:
    """Baseline or candidate while it is timed."""

    def __init__(
        self,
        worker_program: WorkerProgram,
        platform: Platform,
        timeout_s: float,
        *,
        graphs: bool = True,
        call_s: float | None = None,
    ) -> None:
        self._worker_program, self._platform, self._timeout_s = worker_program, platform, timeout_s
        self.call_s = call_s
        """what a call seems to take, in seconds; None where nobody knows"""
        self._sets: Sets | None = None
        self._spots: Spots | None = None
        """None where no pass is on a device"""
        self._wakes_first = False
        self.waits = Waits()
        """what passed around passes on a device"""
        self._began_s = 0.0
        """processor time of the worker before the data of a pass were written, where that is what counts"""
        self.constants: dict[str, torch.Tensor] = {}
        """values of the constant inputs, by which its modules are constructed; all data of a comparison have them"""
        self.mode = Mode.LOOP
        if platform.graphs:
            self.mode = Mode.GRAPH if graphs else Mode.STREAM

    @property
    def worker(self) -> WatchedWorker:
        """The worker that is alive now."""
        return self._worker_program.worker

    @property
    def sets(self) -> Sets:
        """The buffers bound now."""
        assert self._sets is not None
        return self._sets

    def bind(
        self,
        arguments: Arguments,
        reference: Reference,
        passes: Mapping[str, tuple[int, ...]],
        arena: SharedBuffer | None = None,
    ) -> None:
        """Share buffers for a case, warm up on data that is thrown away, the same in every set, and arrange the passes.

        A candidate that cannot be captured gets a fresh worker and plain calls.
        """
        try:
            self._bind(arguments, reference, passes, arena)
        except CandidateFailed as failure:
            if failure.blame is not Blame.NOT_CAPTURABLE:
                raise
            self.mode = Mode.STREAM
            self.kill()
            self._bind(arguments, reference, passes, arena)

    def _bind(
        self,
        arguments: Arguments,
        reference: Reference,
        passes: Mapping[str, tuple[int, ...]],
        arena: SharedBuffer | None,
    ) -> None:
        self.unbind()
        self._wakes_first = not (self._platform.graphs or has_addresses(arguments))
        self._worker_program.ready(arguments.case)
        count = 1 + max((index for indices in passes.values() for index in indices), default=0)
        self._sets = Sets(self._platform, arguments, count, arena)
        if self._platform.graphs:
            self._spots = Spots(self._sets, many=not self._platform.late_work_delays)
        if arena is None:  # an arena holds the data of earlier cases
            self._sets.scatter_canaries()
        device = self._platform.torch_device
        self.constants = draw_constants(arguments, reference, device)
        once = draw_secret(arguments, reference, 1, device, constants=self.constants)
        self._sets.write({name: values.expand(count, *values.shape[1:]) for name, values in once.items()})
        self._sets.poison()
        self._platform.synchronize()
        self._platform.release_cached_memory()
        self.worker.ask(self._sets.bind_message(), self._timeout_s, self._sets.files)
        load_constants(self.worker, self._sets, self.constants, self._platform, self._timeout_s)
        self.worker.ask(Prepare(), self._timeout_s)
        for index in range(count if arguments.task.takes_modules else 1):  # each set has a module, to be warmed up
            self.worker.ask(Call(index), self._timeout_s)
        for name, indices in passes.items():
            self.worker.ask(Arrange(name, indices, graph=self.mode is Mode.GRAPH), self._timeout_s)
        self.worker.stop()

    def refresh(self, inputs: Mapping[str, torch.Tensor], part: slice = EVERY) -> None:
        """New data in every set of `part`, their outputs poisoned again, and the choice of what to read after a pass.

        Where there is no device to switch to the host, it is woken before: with the data there it could begin early.
        """
        if not self._platform.graphs:
            self._began_s = self.worker.processor_s()
        if self._wakes_first:
            self.worker.ask(Prepare(), self._timeout_s)
        self.sets.write(inputs, part)
        self.sets.poison(part)
        if self._spots is not None:
            self._spots.draw(part)

    def run(self, name: str) -> tuple[float, float]:
        """Run a pass: seconds on the judge's clock, and what the worker's own clock says.

        Both processes have slept while the data were written: the way to the device is gone before it is timed. And
        afterwards the device must be idle, or the pass was not over: what is left of it holds up a kernel of the judge,
        or writes what that has read before (`ended`).
        Where kernels are emulated, the seconds are the worker's processor time since before the data came: whenever it
        works, with however many threads, and whatever else the machine does.
        """
        began = time.perf_counter()
        if not self._wakes_first:
            for _ in range(_REHEARSALS):
                self.worker.timed(Prepare(), self._timeout_s)
        prepare_s = time.perf_counter() - began
        seconds, done = self.worker.timed(Pass(name), self._timeout_s)
        if not self._platform.graphs:
            self.worker.stop()
            return self.worker.processor_s() - self._began_s, done.worker_s
        self.worker.halt()
        if self._spots is not None:
            self._spots.read()
        self._platform.launch_tiny_kernel()
        self.waits.add(name, prepare_s, self.worker.ready_s, time.perf_counter() - self.worker.over_s)
        self.worker.stop()
        return seconds, done.worker_s

    def ended(self) -> bool:
        """Return whether the last pass was over when its worker said so, as far as what it wrote can tell by now.

        Where `collect` puts the results there, it tells nothing: nobody but PyTorch is timed like that.
        """
        changed = self._spots is not None and self._spots.changed()
        return not changed or bool(self._worker_program.program.copies)

    def collect(self, name: str) -> None:
        """Have results that the pass only computed put where the judge looks for them."""
        if self._worker_program.program.copies:
            self.worker.ask(CopyBack(name), self._timeout_s)
            self.worker.stop()

    def unbind(self) -> None:
        """Have the worker unmap the buffers, then free them."""
        self._spots = None
        if self._sets is not None:
            sets, self._sets = self._sets, None
            try:
                self.worker.release(self._timeout_s)
            finally:
                sets.close()

    def kill(self) -> None:
        """Kill the worker, whose word or device context is worth nothing any more, and free the buffers."""
        self._worker_program.close()
        self._spots = None
        if self._sets is not None:
            self._sets.close()
            self._sets = None

"""The correctness stage: one case, several secret seeds, every byte accounted for."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.dump import CallDump
from arena.judge.correctness.inputs import SecretDraw, draw_constants, draw_secret, secret_draws
from arena.judge.correctness.sampled import rows_of, sampled, secret_rows
from arena.judge.correctness.verify import (
    GOOD,
    OutputCheck,
    Tensors,
    check_canaries,
    check_inputs,
    check_outputs,
    check_results,
    compared,
    same_bits,
)
from arena.judge.workers.constants import load_constants
from arena.judge.workers.program import WorkerProgram
from arena.judge.workers.worker import CandidateFailed, Worker
from arena.platforms.base import Platform
from arena.processes.protocol import ASCENDING, DESCENDING, Call, Prepare
from arena.results.messages import bare, message, within
from arena.results.verdict import Status
from arena.task.definition import LARGE, Arguments
from arena.task.numerics.reference import Reference
from arena.task.numerics.wrong_elements import locate

if TYPE_CHECKING:
    import random

    import torch


@dataclass(frozen=True)
class CorrectnessCheck:
    """Checks candidates on single cases: what it needs besides the candidate."""

    platform: Platform
    reference: Reference
    seeds: int
    timeout_s: float
    enough_s: float = math.inf
    """a case that has taken this long is not called again; for kernels that are trusted"""
    dump: CallDump | None = None
    """what writes the call that failed"""

    def draws(self, arguments: Arguments, source: random.Random | None = None) -> tuple[SecretDraw, ...]:
        """Return fresh draws for one case, as many as `run` needs; with a `source`, those that it gives."""
        return secret_draws(sum(self._seeds_of_workers(arguments)), source)

    def run(self, worker_program: WorkerProgram, arguments: Arguments, draws: Sequence[SecretDraw] = ()) -> OutputCheck:
        """Check one case; a failure of the worker is a finding like any other.

        Where inputs are constant, the last draw is another worker's: it has other constants. `draws`: what `draws`
        returned, where another program gets the same; else fresh ones.
        """
        worst, left = 0.0, draws or self.draws(arguments)
        for seeds in self._seeds_of_workers(arguments):
            if worst:
                worker_program.close()
            finding = self._by_one_worker(worker_program, arguments, left[:seeds])
            if finding.status is not Status.PASSED:
                break
            worst, left = max(worst, finding.error_ratio or 0.0), left[seeds:]
        return finding

    def _seeds_of_workers(self, arguments: Arguments) -> tuple[int, ...]:
        return (max(2, self.seeds - 1), 1) if arguments.task.constants and self.seeds > 1 else (self.seeds,)

    def _by_one_worker(
        self, worker_program: WorkerProgram, arguments: Arguments, draws: Sequence[SecretDraw]
    ) -> OutputCheck:
        try:
            worker = worker_program.ready(arguments.case)
        except CandidateFailed as failure:
            return OutputCheck(failure.status, failure.detail)
        sets = Sets(self.platform, arguments, 1)
        try:
            self.platform.release_cached_memory()
            worker.ask(sets.bind_message(), self.timeout_s, sets.files)
            device = self.platform.torch_device
            constants = draw_constants(arguments, self.reference, device, draws[0])
            load_constants(worker, sets, constants, self.platform, self.timeout_s)
            finding = self._over_seeds(worker, sets, constants, draws)
            worker.release(self.timeout_s)
        except CandidateFailed as failure:
            worker_program.close()
            finding = OutputCheck(failure.status, failure.detail)
        finally:
            sets.close()
        return finding

    def first_call(self, worker_program: WorkerProgram, arguments: Arguments) -> OutputCheck:
        """Call once and check nothing but whether it could be called: where Triton compiles."""
        sets = Sets(self.platform, arguments, 1)
        try:
            sets.write(draw_secret(arguments, self.reference, 1, self.platform.torch_device))
            self.platform.synchronize()
            self.platform.release_cached_memory()
            worker = worker_program.ready(arguments.case)
            worker.ask(sets.bind_message(), self.timeout_s, sets.files)
            worker.ask(Prepare(), self.timeout_s)
            worker.ask(Call(0), self.timeout_s)
            worker.release(self.timeout_s)
        except CandidateFailed as failure:
            worker_program.close()
            return OutputCheck(failure.status, failure.detail)
        finally:
            sets.close()
        return OutputCheck(Status.PASSED)

    def _over_seeds(self, worker: Worker, sets: Sets, constants: Tensors, draws: Sequence[SecretDraw]) -> OutputCheck:
        worst, began, device = 0.0, time.monotonic(), self.platform.torch_device
        for draw in draws:
            generator = draw.generator(device)
            drawn = draw_secret(sets.arguments, self.reference, 1, device, constants=constants, generator=generator)
            inputs = {name: values[0] for name, values in drawn.items()}
            finding = self._once(worker, sets, inputs, draw)
            if finding.status is not Status.PASSED:
                return self._of_order(finding, worker, sets, inputs, draw)
            worst = max(worst, finding.error_ratio or 0.0)
            if time.monotonic() - began > self.enough_s:
                break
            if draw is draws[-1]:
                again = self._once(worker, sets, inputs, replace(draw, order=draw.order_again), _right(sets))
                if again.status is not Status.PASSED:
                    return OutputCheck(Status.NONDETERMINISTIC, message("not_deterministic", detail=bare(again.detail)))
        return OutputCheck(Status.PASSED, error_ratio=worst, call_s=finding.call_s)

    def _of_order(
        self, finding: OutputCheck, worker: Worker, sets: Sets, inputs: Tensors, draw: SecretDraw
    ) -> OutputCheck:
        """Return what failed; where an emulation in ascending order is right with the same inputs, with that said."""
        emulated = self.platform.facts().emulated
        if finding.status is not Status.WRONG_RESULT or draw.order == ASCENDING or not emulated:
            return finding
        if self._once(worker, sets, inputs, replace(draw, order=ASCENDING)).status is not Status.PASSED:
            return finding
        order = "descending" if draw.order == DESCENDING else "shuffled"
        return replace(finding, detail=message("wrong_in_order", order=order, detail=bare(finding.detail)))

    def _once(
        self, worker: Worker, sets: Sets, inputs: Tensors, draw: SecretDraw, right: Tensors | None = None
    ) -> OutputCheck:
        """One call on fresh buffers; the judge looks while the worker is stopped. `right`: see `check_call`."""
        before = prepare_call(sets, inputs)
        self.platform.synchronize()
        self.platform.release_cached_memory()
        worker.ask(Prepare(), self.timeout_s)
        asked = time.perf_counter()
        try:
            worker.ask(Call(0, draw.order), self.timeout_s)
        except CandidateFailed as failure:
            self._note(failure.status, sets, inputs, answered=False)
            raise
        call_s = time.perf_counter() - asked
        worker.stop()
        canaries = check_canaries(before, sets)
        del before  # as large as the buffer, and the reference needs room
        found = check_call(canaries, sets, inputs, self.reference, right, draw)
        self._note(found.status, sets, inputs, answered=True)
        return replace(found, call_s=call_s)

    def _note(self, status: Status, sets: Sets, inputs: Tensors, *, answered: bool) -> None:
        if self.dump is not None:
            self.dump.note(status, sets, inputs, self.reference, answered=answered)


def _right(sets: Sets) -> Tensors | None:
    """Return what a call that was right has left; nothing of a `large` case, which would need memory for it."""
    if sets.arguments.case.kind == LARGE:
        return None
    return {spec.name: sets.view(spec.name)[0].clone() for spec in compared(sets.arguments)}


def prepare_call(sets: Sets, inputs: Tensors) -> torch.Tensor:
    """Fill a buffer of one set with canaries, inputs and poison, and return a copy of its bytes."""
    sets.scatter_canaries()
    sets.write({name: values[None] for name, values in inputs.items()})
    sets.poison()
    return sets.raw.clone()


def check_call(
    canaries: OutputCheck,
    sets: Sets,
    inputs: Tensors,
    reference: Reference,
    right: Tensors | None,
    draw: SecretDraw,
) -> OutputCheck:
    """Check what a call has left in a buffer of one set, whose canaries have been checked.

    `right`: results known to be right for these inputs: where the call left the same bits, the reference is not asked.
    """
    for finding in (canaries, check_inputs(inputs, sets, 0)):
        if finding.status is not Status.PASSED:
            return finding
    large = sets.arguments.case.kind == LARGE
    unwritten = sets.unwritten([0])
    if unwritten:  # among so many elements PyTorch locates nothing
        said = "not written" if large else locate(sets.held_poison(unwritten, 0), "not written")
        return OutputCheck(Status.WRONG_RESULT, message("output_not_written", output=unwritten, elements=said))
    if right is not None and all(same_bits(sets.view(name)[0], wanted) for name, wanted in right.items()):
        return GOOD
    if large and sets.arguments.task.independent:
        return _check_sample(sets, inputs, reference, draw)
    return check_results(sets.arguments, reference, inputs, sets, 0)


def _check_sample(sets: Sets, inputs: Tensors, reference: Reference, draw: SecretDraw) -> OutputCheck:
    """Compare a secret sample of rows with the reference of these rows alone."""
    whole = sets.arguments
    rows = secret_rows(whole, draw.generator_of_rows())
    outputs = {spec.name: sets.view(spec.name)[0] for spec in compared(whole)}
    chosen = (rows_of(whole, tensors, rows) for tensors in (inputs, outputs))
    finding = check_outputs(sampled(whole, rows), reference, *chosen)
    if finding.status is Status.PASSED:
        return finding
    detail = within("in_sampled_rows", finding.detail, rows=len(rows), of=whole.names[whole.task.independent])
    return OutputCheck(finding.status, detail, finding.error_ratio)

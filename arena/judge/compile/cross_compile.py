"""The compile stage for cross-compilation targets: does the candidate build for them, and what would its kernels use?

Not a gate: a candidate that builds only where it was written is reported as such. HIP sources go through a cross
compiler, once per dtype; a Triton candidate is called, in a worker of its own for each target, with the arguments of
every case, and its launches are compiled but not run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from arena.errors import InfrastructureError
from arena.judge.compile.stage import hip_sources
from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.inputs import draw_secret
from arena.judge.selection import declared_work
from arena.judge.workers import scheduling
from arena.judge.workers.program import Program, WorkerProgram
from arena.judge.workers.worker import CandidateFailed, ForkServers
from arena.platforms import platform
from arena.platforms.cross import triton as triton_cross
from arena.platforms.cross.compilers import hip_cross_toolchain
from arena.platforms.toolchains.base import BuildFailed, Built, Target
from arena.platforms.toolchains.targets import TARGETS
from arena.processes.protocol import Call, Language, Prepare
from arena.processes.sandbox.compiling import run_confined
from arena.results.messages import message, within
from arena.results.portability import BuildOutcome, KernelUse, TargetBuild, most_used
from arena.task.definition import Case, Task, arguments
from arena.task.numerics.reference import Reference

if TYPE_CHECKING:
    import torch

Report = Callable[[int, int], None]
_MOST_KEPT, _MOST_KEPT_BYTES = 1024, 1 << 20
"""cases whose indices are kept, and bytes of each"""


class CrossCompilation:
    """Builds candidates for other targets. Thread-safe, and kept warm: its fork server imports Triton once."""

    def __init__(self) -> None:
        self._kept: ForkServers | None = None
        self._one_at_a_time = threading.Lock()

    @property
    def fork_servers(self) -> ForkServers:
        """Return where workers come from that compile and run nothing."""
        with self._one_at_a_time:
            if self._kept is None:
                self._kept = ForkServers("cpu", spins=False, interprets=False)
            return self._kept

    def build(
        self, task: Task, candidate: Path, cases: Sequence[Case], targets: Sequence[str], limit: Limit, report: Report
    ) -> tuple[TargetBuild, ...]:
        """One result per target, in order; a failing candidate is a result, a missing compiler is `not_checked`."""
        if not targets:
            return ()
        if task.task_type.triton:
            lanes = _compile_triton(self.fork_servers, task, candidate, cases, targets, limit, report)
            return tuple(lane.result() for lane in lanes)
        return _build_hip(task, candidate, cases, targets, limit, report)

    def close(self) -> None:
        """End the fork servers, if there are any."""
        if self._kept is not None:
            self._kept.close()


@dataclass(frozen=True)
class Limit:
    """Seconds that one compilation may take, the folders that a candidate must not see, and how much is built."""

    timeout_s: float
    hide: tuple[Path, ...] = ()
    once: bool = False
    """whether each signature of a Triton kernel is built once, for the largest case that has it, or every launch"""


def _build_hip(
    task: Task, candidate: Path, cases: Sequence[Case], targets: Sequence[str], limit: Limit, report: Report
) -> tuple[TargetBuild, ...]:
    """Every dtype for every target, on all cores."""
    sources = {target: hip_sources(task.on(target), candidate, cases) for target in targets}

    def one(job: tuple[str, str]) -> Built | BuildFailed | InfrastructureError:
        target, key = job
        try:
            toolchain = hip_cross_toolchain(target, run=run_confined)
            return toolchain.build(sources[target][key], Target(target, TARGETS[target].wave_size), limit.timeout_s)
        except InfrastructureError as problem:
            return problem

    jobs = [(target, key) for target in targets for key in sources[target]]
    outcomes: dict[tuple[str, str], Built | BuildFailed | InfrastructureError] = {}
    with ThreadPoolExecutor(max_workers=len(scheduling.usable())) as pool:
        for job, outcome in zip(jobs, pool.map(one, jobs), strict=True):
            report(len(outcomes), len(jobs))
            outcomes[job] = outcome
    by_target = {target: {key: outcomes[target, key] for key in sources[target]} for target in targets}
    return tuple(_of_hip(target, of_target, limit.timeout_s) for target, of_target in by_target.items())


def _of_failed_build(failed: BuildFailed, timeout_s: float) -> str:
    """Return the detail of a build that failed for a target."""
    if failed.timed_out:
        return message("target_timed_out", allowed_s=timeout_s)
    return message("target_not_compiled", log=failed.log.strip() or "the compiler gave no reason")


def _of_hip(
    target: str, outcomes: dict[str, Built | BuildFailed | InfrastructureError], timeout_s: float
) -> TargetBuild:
    missing = next((str(o) for o in outcomes.values() if isinstance(o, InfrastructureError)), "")
    if missing:
        detail = message("target_compiler_missing", problem=missing)
        return TargetBuild(target, BuildOutcome.NOT_CHECKED, detail, asked=len(outcomes))
    built = [o for o in outcomes.values() if isinstance(o, Built)]
    failed = [(key, o) for key, o in outcomes.items() if isinstance(o, BuildFailed)]
    detail = ""
    if failed:
        key, first = failed[0]
        detail = within("in_build", _of_failed_build(first, timeout_s), dtypes=key)
    seconds = sum(o.seconds for o in outcomes.values() if not isinstance(o, InfrastructureError))
    return TargetBuild(
        target,
        BuildOutcome.FAILED if failed else BuildOutcome.BUILT,
        detail,
        seconds,
        len(built),
        len(outcomes),
        most_used(tuple(use for o in built for use in o.kernels)),
    )


def _compile_triton(
    fork_servers: ForkServers,
    task: Task,
    candidate: Path,
    cases: Sequence[Case],
    targets: Sequence[str],
    limit: Limit,
    report: Report,
) -> list[_Lane]:
    """Every case for every target: inputs are drawn once per case and fp8 format, and targets compiled side by side.

    One lane per target, in order, with what came of it.
    """
    lanes = [_Lane(fork_servers, task.on(target), candidate, target, len(cases), limit) for target in targets]
    formats = {lane.task.fp8: lane.task for lane in lanes}
    if limit.once:
        cases = sorted(cases, key=lambda case: declared_work(arguments(task, case)), reverse=True)
    reference = Reference(task.reference_path)
    with ExitStack() as cleanup, ThreadPoolExecutor(max_workers=len(scheduling.usable())) as pool:
        for lane in lanes:
            cleanup.callback(lane.close)
        for index, case in enumerate(cases):
            report(index, len(cases))
            for fp8, task_there in formats.items():
                alike = [lane for lane in lanes if lane.task.fp8 == fp8]
                with closing(arguments_only(task_there, case, reference)) as sets:
                    list(pool.map(_Lane.compile, alike, repeat(case), repeat(sets)))
    return lanes


def arguments_only(task: Task, case: Case, reference: Reference, known: KnownIndices | None = None) -> Sets:
    """Buffers of the right shapes with valid indices in them; other contents are never read by what is not run.

    `known`: has the indices, or will have them.
    """
    device = platform("cpu")
    worked_out = arguments(task, case)
    sets = Sets(device, worked_out, 1)
    drawn = known.of(task, case) if known is not None else None
    if drawn is None:
        drawn = draw_secret(worked_out, reference, 1, device.torch_device, data=False)
        if known is not None:
            known.keep(task, case, drawn)
    sets.write(drawn)
    return sets


class KnownIndices:
    """Indices that were drawn for cases: where nothing runs, any will do, and some tasks take seconds to draw theirs.

    What floating-point tensors hold is not kept. A case whose indices are large is drawn each time.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Mapping[str, torch.Tensor]] = {}

    def of(self, task: Task, case: Case) -> Mapping[str, torch.Tensor] | None:
        """Return what is known of a case."""
        return self._known.get((task.content_hash, case.id))

    def keep(self, task: Task, case: Case, drawn: Mapping[str, torch.Tensor]) -> None:
        """Keep what was drawn for a case, in place of what has been known for longest."""
        indices = {name: values for name, values in drawn.items() if not values.is_floating_point()}
        if sum(values.nbytes for values in indices.values()) <= _MOST_KEPT_BYTES:
            while len(self._known) >= _MOST_KEPT:
                self._known.pop(next(iter(self._known)), None)
            self._known[task.content_hash, case.id] = indices


class _Lane:
    """One target: its worker, and what has been built so far. After the first failure nothing more is tried."""

    def __init__(
        self, fork_servers: ForkServers, task: Task, candidate: Path, target: str, asked: int, limit: Limit
    ) -> None:
        self.task = task
        self._timeout_s, self._target = limit.timeout_s, target
        program = Program(task, Language.TRITON, {"": candidate}, target=target, once=limit.once)
        self._worker_program = WorkerProgram(fork_servers, None, limit.hide, limit.timeout_s).adopt(program)
        missing = triton_cross.missing(target)
        outcome = BuildOutcome.NOT_CHECKED if missing else BuildOutcome.FAILED
        detail = message("target_compiler_missing", problem=missing) if missing else self._not_reached(0, asked)
        self._result = TargetBuild(target, outcome, detail, asked=asked)
        self._over = bool(missing)
        self._kernels: tuple[KernelUse, ...] = ()

    def compile(self, case: Case, sets: Sets) -> None:
        """Have the candidate launch on a case."""
        if self._over:
            return
        started = time.monotonic()
        try:
            worker = self._worker_program.ready(case)
            worker.ask(sets.bind_message(), self._timeout_s, sets.files)
            worker.ask(Prepare(), self._timeout_s)
            worker.ask(Call(0), self._timeout_s)
            self._kernels += worker.kernels(self._timeout_s)
            worker.release(self._timeout_s)
            self._note(self._not_reached(self._result.builds + 1, self._result.asked), built=1)
        except CandidateFailed as failure:
            self._over = True
            self._note(within("in_case", failure.detail, case=case.label), built=0)
        self._result = replace(self._result, seconds=self._result.seconds + time.monotonic() - started)

    def result(self) -> TargetBuild:
        """Return what came of it; a candidate that launched no Triton kernel has built none."""
        done = replace(self._result, kernels=most_used(self._kernels))
        if done.builds == done.asked and done.kernels:
            return replace(done, outcome=BuildOutcome.BUILT, detail="")
        if done.builds == done.asked:
            return replace(done, detail=message("target_launches_nothing", target=done.target))
        return done

    def close(self) -> None:
        """End the worker and forget what it wrote."""
        self._worker_program.discard()

    def _not_reached(self, built: int, asked: int) -> str:
        return message("target_not_reached", built=built, asked=asked, target=self._target)

    def _note(self, detail: str, *, built: int) -> None:
        self._result = replace(self._result, detail=detail, builds=self._result.builds + built)

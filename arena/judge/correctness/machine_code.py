"""Machine code for AMD GPUs, executed on the CPU: is what was built right, on the smallest seen case?

No gate. In: a candidate that was built for a target. Out: that build with `right`, `wrong` or `not_checked`. It runs in
a confined worker, whose outputs are checked as in the correctness stage. See docs/develop/emulation.md.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from arena.errors import InfrastructureError
from arena.judge.compile.cross_compile import Limit
from arena.judge.compile.stage import hip_sources
from arena.judge.correctness.stage import CorrectnessCheck
from arena.judge.selection import emulation_work
from arena.judge.workers.program import Program, WorkerProgram
from arena.judge.workers.worker import ForkServers
from arena.platforms import platform
from arena.platforms.cpu.amd_isa.hip_host import build_runtime
from arena.platforms.cross.compilers import hip_cross_toolchain
from arena.platforms.rocm.hip_clang import find_clang
from arena.platforms.toolchains.base import Built, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import default_cache_root
from arena.platforms.toolchains.targets import TARGETS
from arena.processes.protocol import Language
from arena.processes.sandbox.compiling import run_confined
from arena.results.messages import message
from arena.results.portability import BuildOutcome, MachineCode, MachineCodeOutcome, TargetBuild
from arena.results.verdict import Status
from arena.task.definition import Case, Task, arguments
from arena.task.numerics.reference import Reference
from arena.task.options import EXECUTED

_OUTCOMES = {
    Status.PASSED: MachineCodeOutcome.RIGHT,
    Status.WRONG_RESULT: MachineCodeOutcome.WRONG,
    Status.NONDETERMINISTIC: MachineCodeOutcome.WRONG,
    Status.OUT_OF_BOUNDS: MachineCodeOutcome.WRONG,
    Status.INPUT_MUTATED: MachineCodeOutcome.WRONG,
}
"""all others are for want of a device, of time, or of an instruction"""


def executed(
    fork_servers: ForkServers, task: Task, candidate: Path, builds: Sequence[TargetBuild], limit: Limit
) -> tuple[TargetBuild, ...]:
    """Execute what was built for the targets whose instructions are known; the other builds stay as they are.

    Args:
        fork_servers: where workers come from that interpret nothing.
        task: the task, of which the seen case with the least work is run.
        candidate: the file that was built.
        builds: what came of it.
        limit: seconds of one call, and the folders that are hidden.
    """
    case = min(task.seen, key=lambda one: emulation_work(arguments(task, one)))
    done = []
    for build in builds:
        if build.target in EXECUTED and build.outcome is BuildOutcome.BUILT:
            build = replace(build, machine_code=_of_target(fork_servers, task, candidate, build.target, case, limit))
        done.append(build)
    return tuple(done)


def _of_target(
    fork_servers: ForkServers, task: Task, candidate: Path, target: str, case: Case, limit: Limit
) -> MachineCode:
    started = time.monotonic()
    task = task.on(target)
    worker_program = WorkerProgram(fork_servers, None, limit.hide, limit.timeout_s)
    check = CorrectnessCheck(platform("cpu"), Reference(task.reference_path), 1, limit.timeout_s)
    try:
        worker_program.adopt(_program(task, candidate, target, case, limit.timeout_s))
        finding = check.run(worker_program, arguments(task, case))
    except InfrastructureError as problem:
        detail = message("target_compiler_missing", problem=problem)
        return MachineCode(MachineCodeOutcome.NOT_CHECKED, detail, case.label)
    finally:
        worker_program.discard()
    outcome = _OUTCOMES.get(finding.status, MachineCodeOutcome.NOT_CHECKED)
    said = finding.detail or str(finding.status)
    if outcome is MachineCodeOutcome.RIGHT:
        said = f"{finding.error_ratio or 0.0:.2g} of the tolerance"
    return MachineCode(outcome, said, case.label, time.monotonic() - started)


def _program(task: Task, candidate: Path, target: str, case: Case, timeout_s: float) -> Program:
    """Return what a worker executes: the file itself, or the library for the case's dtypes, which was just built."""
    clang = find_clang()
    if clang is None:
        raise InfrastructureError("no clang++ for AMD GPUs, with llvm-objdump beside it: see `arena doctor`")
    disassembler = clang.with_name("llvm-objdump")
    if task.task_type.triton:
        return Program(task, Language.TRITON, {"": candidate}, target=target, disassembler=disassembler)
    ((key, source),) = hip_sources(task, candidate, [case]).items()
    toolchain = hip_cross_toolchain(target, run=run_confined)
    built = toolchain.build(source, Target(target, TARGETS[target].wave_size), timeout_s)
    if not isinstance(built, Built):
        raise InfrastructureError(f"built before, and not again: {built.log.strip()}")
    runtime = build_runtime(BuildCache(default_cache_root()))
    return Program(
        task, Language.HIP, {key: built.library}, target=target, disassembler=disassembler, beside=(runtime,)
    )

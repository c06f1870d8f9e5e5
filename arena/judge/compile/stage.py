"""The compile stage: from the file an agent handed in to a program that workers can load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from arena.errors import InfrastructureError
from arena.judge.compile.hip_toolchains import toolchain_for
from arena.judge.compile.signature import wrong_signature
from arena.judge.workers import scheduling
from arena.judge.workers.program import Program
from arena.judge.workers.watchdog import memory_limit_bytes
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.by_hand import compile_command, header_files
from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.toolchains.base import BuildFailed, Built, HipToolchain, NativeWorker, Source, Target
from arena.platforms.toolchains.hip_build import default_cache_root
from arena.platforms.toolchains.hip_reads import forbidden_reads
from arena.platforms.toolchains.hip_symbols import broken_rules
from arena.platforms.toolchains.kernel_library import inlined
from arena.platforms.toolchains.task_header import dtype_key, task_header
from arena.processes import process
from arena.processes.protocol import Language
from arena.processes.sandbox import compiling
from arena.results.environment import DeviceFacts
from arena.results.messages import message, within
from arena.results.verdict import Status
from arena.task.definition import Case, Task

COMPILER_BYTES = 8 << 30
"""address space of one compiler process: a macro that doubles thirty times asks for more than any machine has"""
COMPILED_BYTES = 128 << 20
"""each file that a compiler writes: an array of a gigabyte with one value in it is a line of text"""
COMPILER_S = 120.0
_MOST_RULES = 3
# Included once more at the end: a candidate that never included it, and gets the signature wrong, does not compile.
_CHECKED = '\n#include "task.h"\n'


@dataclass(frozen=True)
class Build:
    """A program ready to load, what the compilers said, and the seconds of the longest single build."""

    program: Program
    log: str = ""
    seconds: float = 0.0


def hip_compiler_version(facts: DeviceFacts) -> dict[str, str]:
    """Return the version of the compiler of HIP candidates as records hold it; empty where there is none."""
    try:
        return {"hip compiler": _toolchain(Target(facts.arch, facts.wave_size)).version()}
    except InfrastructureError:
        return {}


def build_program(task: Task, candidate: Path, cases: Iterable[Case], facts: DeviceFacts) -> Build:
    """Compile a candidate for every dtype its cases need, at once.

    Raises `CandidateFailed` with `compile_error`, or `rule_violation` where an object file needs what it may not.
    Triton kernels are compiled by the worker that launches them first.
    """
    if task.task_type.triton:
        return Build(Program(task, Language.TRITON, {"": candidate}))
    target = Target(facts.arch, facts.wave_size)
    toolchain = _toolchain(target)
    sources = hip_sources(task, candidate, cases)

    def build(source: Source) -> Built | BuildFailed:
        return toolchain.build(source, target, COMPILER_S)

    with ThreadPoolExecutor(max_workers=len(scheduling.usable())) as pool:
        outcomes = dict(zip(sources, pool.map(build, sources.values()), strict=True))
    files = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, BuildFailed):
            own, printed = candidate.read_text(encoding="utf-8", errors="replace"), outcome.printed or outcome.log
            if differs := wrong_signature(task, own, printed, candidate.name):
                raise CandidateFailed(Status.COMPILE_ERROR, message("wrong_signature", signatures=differs))
            raise _refusal(key, outcome)
        broken = [
            *forbidden_reads(outcome.library, toolchain, target),
            *broken_rules(outcome.library, target.vendor),
        ]
        if broken:
            detail = within("in_file", "\n".join(broken[:_MOST_RULES]), file=candidate.name)
            raise CandidateFailed(Status.RULE_VIOLATION, detail)
        files[key] = outcome.library
    log = "\n".join(filter(None, (outcome.log.strip() for outcome in outcomes.values())))
    program = Program(task, Language.HIP, files, native_worker=toolchain.native_worker(target.arch))
    return Build(program, log, max(outcome.seconds for outcome in outcomes.values()))


def by_hand(task: Task, candidate: Path, case: Case, facts: DeviceFacts) -> tuple[dict[str, str], str]:
    """Return files to put beside a candidate, and the command that compiles it with them for one case."""
    files = header_files(task, case, facts)
    if not facts.emulated:
        return files, compile_command(candidate.name, facts)
    target = Target(facts.arch, facts.wave_size)
    toolchain = _toolchain(target)
    assert isinstance(toolchain, HipCpuToolchain)
    (source,) = hip_sources(task, candidate, [case]).values()
    more, command = toolchain.by_hand(source, target)
    return {**files, **more}, command


def _refusal(dtypes: str, failed: BuildFailed) -> CandidateFailed:
    """Return the failure of a build for these dtypes."""
    log = failed.log.strip()
    if failed.timed_out:
        printed = f"; it printed: {log}" if log else ""
        detail = message("compiler_timed_out", allowed_s=COMPILER_S, printed=printed)
        return CandidateFailed(Status.TIMEOUT, within("in_build", detail, dtypes=dtypes))
    detail = message("compiler_refused", log=log)
    return CandidateFailed(Status.COMPILE_ERROR, within("in_build", detail, dtypes=dtypes))


def hip_worker(arch: str) -> NativeWorker:
    """The program that loads HIP candidates on a device of `arch`: built the first time, which takes seconds."""
    return _toolchain(Target(arch)).native_worker(arch)


def _toolchain(target: Target) -> HipToolchain:
    """Builds made in another sandbox are none of its: what could be read then may stand in them."""
    return toolchain_for(target, default_cache_root() / compiling.level(), run=run_compiler)


def run_compiler(
    command: Sequence[str | Path], *, timeout_s: float, cwd: Path | None, env: Mapping[str, str] | None
) -> process.Finished:
    """Run a compiler in a sandbox, within limits: it may be given a bomb, or sent for secrets."""
    most = min(COMPILER_BYTES, memory_limit_bytes())
    return compiling.run_confined(
        command, timeout_s=timeout_s, cwd=cwd, env=env, memory_bytes=most, file_bytes=COMPILED_BYTES
    )


def hip_sources(task: Task, candidate: Path, cases: Iterable[Case]) -> dict[str, Source]:
    """Return what a compiler is given for each tuple of dtypes among the cases."""
    text = inlined(candidate.read_text(encoding="utf-8", errors="replace"), candidate.name) + _CHECKED
    by_key = {dtype_key(task, case): case for case in cases}
    return {key: Source(text, task_header(task, case), candidate.name) for key, case in by_key.items()}


def baseline_program(
    task: Task, cases: Iterable[Case], facts: DeviceFacts, *, language: Language = Language.TORCH
) -> Program:
    """The program whose time is to be beaten: the baseline kernel, or PyTorch running the reference."""
    if task.baseline_kernel is not None:
        return build_program(task, task.baseline_kernel, cases, facts).program
    copies = tuple(spec.name for spec in (*task.outputs, *(s for s in task.tensors if s.mutable)))
    return Program(task, language, {"": task.reference_path}, copies)

"""Mutants of a task's baseline kernel, tried like candidates on the CPU: a good task rejects them.

All mutants of a HIP kernel are built as one library, each in a namespace and under an entry of its own.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from arena.checks.tasks.mutants import hip, triton
from arena.checks.tasks.mutants.base import Mutant, choose
from arena.errors import InfrastructureError
from arena.judge.compile.hip_toolchains import toolchain_for
from arena.judge.compile.stage import build_program
from arena.judge.correctness.stage import CorrectnessCheck
from arena.judge.evaluate import JudgeContext
from arena.judge.selection import emulation_work
from arena.judge.workers.program import Program, WorkerProgram
from arena.judge.workers.worker import CandidateFailed
from arena.platforms.toolchains.base import Built, NativeWorker, Source, Target
from arena.platforms.toolchains.kernel_library import inlined
from arena.platforms.toolchains.task_header import dtype_key, task_header
from arena.processes.printable import shortened
from arena.processes.protocol import Language
from arena.results.check import CheckItem, CheckOutcome, MutantFate, scored
from arena.results.messages import message
from arena.results.verdict import Status
from arena.task.definition import Case, Task, arguments
from arena.task.numerics.reference import Reference

_LEAST_TIMEOUT_S = 3.0
_MOST_TIMEOUT_S = 60.0
_MOST_CASE_S = 15.0
_BUILD_TIMEOUT_S = 300.0
_LOG_CHARACTERS = 500
_SEEDS = 3
"""as many as an evaluation has by default"""
_REBUILDS = 4
_CASES = 5
_FINENESS = ("float64", "float32", "float16", "bfloat16")
_NAMED = re.compile(r"^(m\d+):\d+(?::\d+)?: +(?:(?:fatal )?error:|required from)", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(?:include\b|define[ \t]+ARENA_WORKSPACE\b)[^\n]*$", re.MULTILINE)
Report = Callable[[int, int], None]
Programs = Mapping[str, Program]


def try_mutants(
    task: Task, cases: Sequence[Case], reference: Reference, context: JudgeContext, most: int, report: Report
) -> tuple[MutantFate, ...]:
    """The fates of at most `most` mutants, on a few cases of the finest dtype; those that pass, on all others too.

    A kernel may compute 16-bit dtypes in another way, as one with matrix units does.
    """
    kernel = task.trusted_kernel
    if kernel is None:
        return ()
    text = kernel.read_text(encoding="utf-8")
    is_triton = task.task_type.triton
    chosen = choose((triton if is_triton else hip).derive(text), most)
    check = CorrectnessCheck(context.timer.platform, reference, _SEEDS, _MOST_TIMEOUT_S)
    build = _triton_programs if is_triton else _hip_programs
    statuses = {mutant.name: Status.PASSED for mutant in chosen}
    with tempfile.TemporaryDirectory(prefix="arena-mutants-") as folder:
        for few in cases_by_dtypes(task, cases):
            left = [mutant for mutant in chosen if statuses[mutant.name] is Status.PASSED]
            if not left:
                break
            programs = build(task, left, few[0], Path(folder))
            itself = build_program(task, kernel, few, context.timer.facts).program
            limits = _limited(itself, few, check, context)
            for mutant in left:
                report(len(chosen) - len(left), len(chosen))
                program = programs.get(mutant.name)
                statuses[mutant.name] = Status.COMPILE_ERROR if program is None else _fate(program, limits, context)
    return tuple(
        MutantFate(one.name, one.line, one.change, statuses[one.name], task.equivalent_mutants.get(one.name, ""))
        for one in chosen
    )


def mutants_item(task: Task, fates: Sequence[MutantFate]) -> CheckItem:
    """Enough of them rejected, and no declaration that means nothing."""
    if not fates:
        return CheckItem("mutants", CheckOutcome.NOT_CHECKED, message("check_mutants_no_kernel"))
    declared = {name for name in task.equivalent_mutants if name[0].isdigit()}  # the others are omissions
    strange = sorted(declared - {fate.name for fate in fates if fate.status is Status.PASSED})
    if strange:
        detail = message("check_mutants_declared", names=", ".join(strange))
        return CheckItem("mutants", CheckOutcome.FAILED, detail)
    counted = [fate for fate in fates if fate.built and not fate.equivalent]
    if not counted:
        return CheckItem("mutants", CheckOutcome.FAILED, message("check_mutants_unbuilt", count=len(fates)))
    return scored("mutants", counted)


def cases_by_dtypes(task: Task, cases: Sequence[Case]) -> list[list[Case]]:
    """A few cases for each choice of dtypes, the finest choice first; then what is left of each choice."""

    def dtypes(case: Case) -> list[str]:
        return [str(case.values[name]) for name in task.dtypes]

    def fineness(chosen: Sequence[str]) -> list[int]:
        return [_FINENESS.index(name) if name in _FINENESS else len(_FINENESS) for name in chosen]

    by_work = sorted(cases, key=lambda case: emulation_work(arguments(task, case)))
    choices = sorted(dict.fromkeys(tuple(dtypes(case)) for case in by_work), key=fineness)
    groups, others = [], []
    for choice in choices:
        same = [case for case in by_work if tuple(dtypes(case)) == choice]
        few = [*same[: -1 : max(1, len(same) // _CASES)], same[-1]]
        groups.append(few)
        others.append([case for case in same if case not in few])
    return [*groups, *filter(None, others)]


def _limited(
    itself: Program, cases: Sequence[Case], check: CorrectnessCheck, context: JudgeContext
) -> list[tuple[Case, CorrectnessCheck]]:
    """The cases for mutants, each with a limit for a call: as long as the kernel itself takes here for all its calls.

    So a machine that is slow or busy takes no mutant for one without end. Cases of more than `_MOST_CASE_S` are left
    out, unless the quickest takes as long.
    """
    took: dict[str, float] = {}
    for case in cases:
        started = time.monotonic()
        _fate(itself, [(case, check)], context)
        took[case.id] = time.monotonic() - started
    most = max(_MOST_CASE_S, min(took.values()))
    return [
        (case, replace(check, timeout_s=min(max(_LEAST_TIMEOUT_S, took[case.id]), _MOST_TIMEOUT_S)))
        for case in cases
        if took[case.id] <= most
    ]


def _fate(program: Program, cases: Sequence[tuple[Case, CorrectnessCheck]], context: JudgeContext) -> Status:
    """Return how a mutant ends: the status of the first case that it fails."""
    worker_program = WorkerProgram(context.fork_servers, None, (), _MOST_TIMEOUT_S).adopt(program)
    try:
        for case, correctness in cases:
            finding = correctness.run(worker_program, arguments(program.task, case))
            if finding.status is not Status.PASSED:
                return finding.status
        return Status.PASSED
    except CandidateFailed as failure:
        return failure.status
    finally:
        worker_program.discard()


def _triton_programs(task: Task, chosen: Sequence[Mutant], case: Case, folder: Path) -> Programs:
    """A module for each; whether it builds shows when it is called."""
    programs = {}
    for index, mutant in enumerate(chosen):
        file = folder / f"mutant_{index}.py"
        file.write_text(mutant.text, encoding="utf-8")
        programs[mutant.name] = Program(task, Language.TRITON, {"": file})
    return programs


def _hip_programs(task: Task, chosen: Sequence[Mutant], case: Case, folder: Path) -> Programs:
    """One library for all that build: those whose lines the compiler complains of are left out of the next attempt.

    Raises `InfrastructureError` where it complains of none, as when it takes too long: nothing is known of them then.
    """
    target = Target("cpu", 32)
    toolchain = toolchain_for(target)
    left = {f"m{index}": mutant for index, mutant in enumerate(chosen)}
    for attempt in range(_REBUILDS):
        if not left:
            break
        source = Source(_together(task, left), task_header(task, case), "mutants.hip")
        outcome = toolchain.build(source, target, _BUILD_TIMEOUT_S)
        if isinstance(outcome, Built):
            native_worker = toolchain.native_worker(target.arch)
            return {
                mutant.name: _program(task, case, outcome.library, tag, native_worker) for tag, mutant in left.items()
            }
        broken = set(_NAMED.findall(outcome.printed or outcome.log))
        if not broken or attempt + 1 == _REBUILDS:
            raise InfrastructureError(f"the mutants do not build together: {shortened(outcome.log, _LOG_CHARACTERS)}")
        left = {tag: mutant for tag, mutant in left.items() if tag not in broken}
    return {}


def _program(task: Task, case: Case, library: Path, tag: str, native_worker: NativeWorker) -> Program:
    entry = replace(task, entry=f"{tag}_{task.entry}")
    return Program(entry, Language.HIP, {dtype_key(task, case): library}, native_worker=native_worker)


def _together(task: Task, left: Mapping[str, Mutant]) -> str:
    """One source: what all include, then each mutant in a namespace, its entry and workspace function renamed."""
    first = next(iter(left.values())).text
    heads = "\n".join(found.group() for found in _INCLUDE.finditer(first))
    parts = [inlined(heads, "mutants.hip"), hip.PRELUDE]
    names = re.compile(rf"\b({re.escape(task.entry)}(?:_workspace)?)(?=\()")
    for tag, mutant in left.items():
        body = names.sub(rf"{tag}_\1", _INCLUDE.sub("", mutant.text))
        parts.append(f'namespace {tag} {{\n#line 1 "{tag}"\n{body}\n}}')
    return "\n".join(parts) + "\n"

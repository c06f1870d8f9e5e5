"""Select the cases of an evaluation: all of them on a GPU, the small ones where kernels are emulated."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from arena.results.effort import Effort
from arena.results.environment import DeviceFacts
from arena.results.record import CaseResult
from arena.results.verdict import Status
from arena.task.corpus.like_case import like_case
from arena.task.definition import LARGE, Arguments, Case, Task, arguments
from arena.task.options import CPU_MAX_WORK, Options

_LEAST_CASES = 2
_HELD_AT_ONCE = 8
"""times the bytes of all tensors that a check of one case needs: buffer, inputs, masks, or inputs in float64"""


def declared_work(worked_out: Arguments) -> float:
    """Operations plus bytes of one call."""
    return worked_out.flops + worked_out.num_bytes


def emulation_work(worked_out: Arguments) -> float:
    """Return the work of an emulation: operations plus bytes, of whole tensors also where a call touches only part."""
    return worked_out.flops + max(worked_out.num_bytes, worked_out.held_bytes)


def cpu_cases(task: Task) -> tuple[Case, ...]:
    """Return the cases that the CPU platform runs of each task, cheap ones first."""
    work = {case.id: emulation_work(arguments(task, case)) for case in task.cases}
    return tuple(sorted((c for c in task.cases if work[c.id] <= CPU_MAX_WORK), key=lambda case: work[case.id]))


def with_made_up_case(task: Task, options: Options) -> Task:
    """Return the task; with `like` its only case is the one that this makes up. Raises `UsageError`."""
    if options.like is None:
        return task
    return replace(task, seen=(like_case(task, options.like, options.case),), heldout=())


def select_cases(task: Task, cases: tuple[Case, ...], options: Options) -> tuple[Case, ...]:
    """Return the cases to run, in order: those that `only` names, or all, whose emulation work is at most `max_work`.

    The two smallest are kept where fewer than two are small enough.
    """
    if options.case and options.like is None:
        cases = tuple(case for case in cases if case.id in options.case)
    if options.max_held is not None:
        cases = tuple(case for case in cases if case.kind != LARGE or _held(task, case) <= options.max_held)
    if options.max_work is None:
        return cases
    work = {case.id: emulation_work(arguments(task, case)) for case in cases}
    smallest = sorted(work, key=lambda case_id: work[case_id])[:_LEAST_CASES]
    return tuple(case for case in cases if work[case.id] <= options.max_work or case.id in smallest)


def _held(task: Task, case: Case) -> int:
    return arguments(task, case).held_bytes


def is_timed(case: Case, facts: DeviceFacts, effort: Effort) -> bool:
    """Return whether a case is timed; in an emulation, which cannot run sizes of production, untimed ones are, too."""
    return effort.times(case.split) and (case.timed or facts.emulated)


def bounded(options: Options, facts: DeviceFacts) -> Options:
    """Unless told otherwise, skip `large` cases that do not fit the device, and in an emulation all but small ones."""
    if options.max_held is None:
        options = structs.replace(options, max_held=facts.memory_bytes // _HELD_AT_ONCE)
    if options.max_work is None and facts.emulated:
        return structs.replace(options, max_work=CPU_MAX_WORK)
    return options


def not_run(case: Case) -> CaseResult:
    """The result of a case that was never reached."""
    return CaseResult(
        case=case.id,
        split=case.split,
        kind=case.kind,
        label=case.label,
        baseline=Status.NOT_RUN,
        candidate=Status.NOT_RUN,
        calls=case.calls,
        gpu_share=case.gpu_share,
        regime=case.regime,
    )

"""Check a task: its definition, and a baseline kernel for it.

The kernel is the task's own, or, where the task type has none, that of the task with the same operator.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from arena.checks.tasks.arithmetic import arithmetic_item
from arena.checks.tasks.conditioning import conditioning_item
from arena.checks.tasks.domains import domain_items, holds_usual_numbers
from arena.checks.tasks.self_timing import SelfTiming
from arena.checks.tasks.soundness import Draw, by_work, check_definition, generator_for, unless_declared
from arena.checks.tasks.stability import stability_items
from arena.checks.tasks.unread import unread_item
from arena.checks.tasks.work import work_items
from arena.errors import FileError
from arena.judge.compile.cross_compile import Limit
from arena.judge.compile.stage import build_program
from arena.judge.correctness.conditioning import MARGIN
from arena.judge.correctness.launches import check_launches
from arena.judge.correctness.machine_code import executed
from arena.judge.correctness.verify import OutputCheck
from arena.judge.correctness.wave_size import at_both_wave_sizes, build_other_wave
from arena.judge.evaluate import JudgeContext, checks
from arena.judge.selection import emulation_work, select_cases
from arena.judge.workers.program import Program, WorkerProgram, triton_cache
from arena.judge.workers.worker import CandidateFailed
from arena.processes.protocol import Language
from arena.results.check import CheckItem, CheckOutcome, MutantFate, TaskCheck
from arena.results.messages import message, within
from arena.results.portability import BuildOutcome, MachineCodeOutcome
from arena.results.verdict import Status
from arena.runs.sharing import share_out
from arena.task.corpus.level import level_of
from arena.task.definition import LARGE, Case, Task, arguments
from arena.task.numerics.reference import Reference
from arena.task.options import Options

_MOST_WORKERS = 6
_DEFINITION_CASES = 4
_DEFINITION_WORK = 3e5
_OF_MACHINE_CODE = {
    MachineCodeOutcome.RIGHT: CheckOutcome.PASSED,
    MachineCodeOutcome.WRONG: CheckOutcome.FAILED,
    MachineCodeOutcome.NOT_CHECKED: CheckOutcome.NOT_CHECKED,
}
_ENOUGH_S = 2.0
"""seconds after which an emulation of a case is not called again"""
Report = Callable[[int, int], None]


class TaskChecker:
    """The check of one task on one platform."""

    def __init__(
        self, task: Task, options: Options, context: JudgeContext, *, every_launch: bool = False, timing: bool = True
    ) -> None:
        self._task, self._options, self._context = task, options, context
        self._times = timing and not context.timer.facts.emulated
        self._limit = Limit(options.call_timeout_s, once=not every_launch)
        self._cases = select_cases(task, task.cases, options)
        correctness, self._performance = checks(task, options, context.timer)
        self._correctness = replace(correctness, enough_s=_ENOUGH_S) if context.timer.facts.emulated else correctness
        self._timing = SelfTiming(task, context, self._performance, self._worker_program, options.call_timeout_s)

    def run(self, most_mutants: int, report: Report) -> TaskCheck:
        """Every item in turn; or, where mutants are asked for, the items about them alone."""
        started = time.monotonic()
        fates: tuple[MutantFate, ...] = ()
        items: list[CheckItem] = []
        if most_mutants:
            items, fates = self._mutants(most_mutants, report)
        else:
            before = started
            for item in _of_the_author(self._items()):
                now = time.monotonic()
                items.append(replace(item, seconds=now - before))
                before = now
                report(len(items), 0)
        return TaskCheck(
            task=self._task.id,
            task_hash=self._task.content_hash,
            platform=self._context.timer.facts.platform,
            items=tuple(items),
            mutants=fates,
            seconds=time.monotonic() - started,
            aa_worst=self._timing.worst,
            speeds=tuple(self._timing.speeds),
            device=self._context.timer.facts.name,
        )

    def _mutants(self, most: int, report: Report) -> tuple[list[CheckItem], tuple[MutantFate, ...]]:
        from arena.checks.tasks.mutant_items import check_mutants

        reference = Reference(self._task.reference_path)
        try:
            return check_mutants(self._task, self._cases, reference, self._context, most, report)
        except FileError as problem:
            return [reference_failed(problem)], ()

    def _items(self) -> Iterator[CheckItem]:
        # On the CPU, whatever is checked: an index that an exchanged input puts out of range ends a GPU context.
        generator = generator_for(self._task)
        small = self._small_cases()
        reference = Reference(self._task.reference_path)
        definition = list(check_definition(self._task, reference, small, generator))
        yield from definition
        if definition[0].outcome is CheckOutcome.FAILED:
            return
        draws = [Draw.of(reference, arguments(self._task, case), generator) for case in small]
        draws = [draw for draw in draws if holds_usual_numbers(draw)] or draws
        told_apart = arithmetic_item(draws, generator)
        if told_apart is not None:
            yield unless_declared(self._task, told_apart)
        rounding = conditioning_item(self._task, reference, generator)
        if rounding is not None:
            yield rounding
        yield unread_item(self._task, reference, small, level_of(self._task), generator)
        yield from work_items(self._task, reference, [draw.arguments.case for draw in draws], generator)
        yield from stability_items(self._task, reference, level_of(self._task), generator)
        yield from domain_items(self._task, reference, level_of(self._task), generator)
        kernel = self._task.trusted_kernel
        if kernel is None:
            yield CheckItem("kernel", CheckOutcome.NOT_CHECKED, message("check_no_kernel"))
            return
        yield from self._kernel_items(kernel)
        yield from self._targets(kernel)
        if self._task.expert not in (None, kernel):
            yield self._expert(self._task.expert)

    def _small_cases(self) -> list[Case]:
        """The largest of the cases that cost little, of different dtypes first."""
        ordered = by_work(self._task, self._cases)
        cheap = [c for c in ordered if emulation_work(arguments(self._task, c)) <= _DEFINITION_WORK]
        cheap = cheap or ordered[:_DEFINITION_CASES]
        firsts = {tuple(case.values[name] for name in self._task.dtypes): case for case in cheap}
        rest = [case for case in reversed(cheap) if case not in firsts.values()]
        wanted = [*firsts.values(), *rest][: max(_DEFINITION_CASES, len(firsts))]
        return sorted(wanted, key=lambda case: emulation_work(arguments(self._task, case)))

    def _kernel_items(self, kernel: Path) -> Iterator[CheckItem]:
        facts = self._context.timer.facts
        try:
            program = build_program(self._task, kernel, self._cases, facts).program
            other = build_other_wave(self._task, kernel, self._cases, facts)
        except CandidateFailed as failure:
            yield CheckItem("builds", CheckOutcome.FAILED, within("of_kernel", failure.detail, status=failure.status))
            return
        yield CheckItem("builds", CheckOutcome.PASSED, f"for {facts.arch}")
        yield from self._correct(program, other.program if other else None)
        if self._times:
            yield from self._timing.items(program, self._cases)

    def _expert(self, kernel: Path) -> CheckItem:
        """A better solution must be as right; on a GPU its speed is noted."""
        facts = self._context.timer.facts
        try:
            program = build_program(self._task, kernel, self._cases, facts).program
            other = build_other_wave(self._task, kernel, self._cases, facts)
        except CandidateFailed as failure:
            return CheckItem("expert", CheckOutcome.FAILED, within("of_kernel", failure.detail, status=failure.status))
        items = list(self._correct(program, other.program if other else None))
        if items[0].outcome is CheckOutcome.PASSED and self._times:
            self._timing.note(program, self._cases)
        return CheckItem("expert", items[0].outcome, items[0].detail)

    def _worker_program(self, program: Program) -> WorkerProgram:
        """Return a worker for a kernel of the task's own; what Triton compiles in it is there for the next worker."""
        cache, timeout_s = triton_cache(), self._options.call_timeout_s
        return WorkerProgram(self._context.fork_servers, cache, (), timeout_s).adopt(program)

    def _crew(self, program: Program, other_wave: Program | None) -> list[list[WorkerProgram]]:
        """Workers to share the cases among, one per wave size: several on a GPU for Triton, which compiles there."""
        several = program.language is Language.TRITON and not self._context.timer.facts.emulated
        size = max(1, min(_MOST_WORKERS, (os.cpu_count() or 1) // 2, len(self._cases))) if several else 1
        return [[self._worker_program(one) for one in (program, other_wave) if one is not None] for _ in range(size)]

    def _correct(self, program: Program, other_wave: Program | None) -> Iterator[CheckItem]:
        """Right on every case, at both wave sizes where there are two, and by which margin."""
        crew = self._crew(program, other_wave)

        def run(case: Case, worker_programs: Sequence[WorkerProgram]) -> tuple[str, OutputCheck]:
            worked_out = arguments(self._task, case)
            draws = self._correctness.draws(worked_out, random.Random(f"{self._task.content_hash} {case.id}"))
            finding, *others = [self._correctness.run(one, worked_out, draws) for one in worker_programs]
            return case.id, at_both_wave_sizes(finding, others[0]) if others else finding

        try:
            ordinary = [case for case in self._cases if case.kind != LARGE]
            findings = dict(share_out(ordinary, crew, run, _discard))
            # One at a time: each may need most of the device's memory.
            findings |= share_out([case for case in self._cases if case.kind == LARGE], crew[:1], run, _discard)
        finally:
            for worker_programs in crew:
                _discard(worker_programs)
        for case in self._cases:
            finding = findings[case.id]
            if finding.status is not Status.PASSED:
                yield _not_correct(case, finding)
                return
        misplaced = self._misplaced(program)
        if misplaced is not None:
            yield misplaced
            return
        worst, where = max((findings[case.id].error_ratio or 0.0, case.id) for case in self._cases)
        left = len(self._task.cases) - len(self._cases)
        waves = ", at wave sizes 32 and 64" if other_wave is not None else ""
        skipped = f"; {left} too large for this platform were not run" if left else ""
        a_case = f" within {_ENOUGH_S:g} s a case" if self._correctness.enough_s == _ENOUGH_S else ""
        looked = f"{len(self._cases)} cases, {self._options.seeds} seeds{a_case}{waves}{skipped}"
        yield CheckItem("correct", CheckOutcome.PASSED, looked)
        if worst < MARGIN:
            seen = f"worst error is {worst:.3g} of the tolerance, in {where}; at most {MARGIN} is allowed"
            yield unless_declared(self._task, CheckItem("margin", CheckOutcome.PASSED, seen))
        else:
            detail = message("check_margin", found=worst, case=where, most=MARGIN)
            yield unless_declared(self._task, CheckItem("margin", CheckOutcome.FAILED, detail))

    def _misplaced(self, program: Program) -> CheckItem | None:
        """Return the failure of a launch that is too large to be emulated: of its grid, or of an offset at its ends."""
        if not self._context.timer.facts.emulated:
            return None
        left_out = [case for case in self._task.cases if case not in self._cases]
        worker_program = self._worker_program(program)
        try:
            found = check_launches(self._context.timer.platform, worker_program, self._correctness.reference, left_out)
        finally:
            worker_program.discard()
        return None if found is None else _not_correct(*found)

    def _targets(self, kernel: Path) -> Iterator[CheckItem]:
        wanted = self._options.targets
        builds = self._context.cross_compilation.build(
            self._task, kernel, self._task.cases, wanted, self._limit, lambda done, total: None
        )
        if self._options.execute:
            fork_servers = self._context.cross_compilation.fork_servers
            builds = executed(fork_servers, self._task, kernel, builds, self._limit)
        outcomes = {
            BuildOutcome.BUILT: CheckOutcome.PASSED,
            BuildOutcome.FAILED: CheckOutcome.FAILED,
            BuildOutcome.NOT_CHECKED: CheckOutcome.NOT_CHECKED,
        }
        for build in builds:
            detail = build.detail or f"all {build.builds}, {build.seconds:.1f} s"
            yield CheckItem(f"builds for {build.target}", outcomes[build.outcome], detail)
            if build.machine_code is not None:
                found = build.machine_code
                detail = within("in_machine_code", found.detail, case=found.case)
                yield CheckItem(f"machine code for {build.target}", _OF_MACHINE_CODE[found.outcome], detail)


def _not_correct(case: Case, finding: OutputCheck) -> CheckItem:
    """Return the item of a kernel that is not right in a case."""
    detail = within("of_case", finding.detail, case=case.id, label=case.label, status=finding.status)
    return CheckItem("correct", CheckOutcome.FAILED, detail)


def _of_the_author(items: Iterator[CheckItem]) -> Iterator[CheckItem]:
    """Yield the items; where a file of the task fails, at whatever point, that is an item too."""
    try:
        yield from items
    except FileError as problem:
        yield reference_failed(problem)


def reference_failed(problem: FileError) -> CheckItem:
    """Return the item of a reference that does not load, or fails somewhere; the message names file and line."""
    return CheckItem("reference", CheckOutcome.FAILED, message("check_reference_failed", problem=problem))


def _discard(worker_programs: Sequence[WorkerProgram]) -> None:
    for worker_program in worker_programs:
        worker_program.discard()

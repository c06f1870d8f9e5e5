"""Checks many tasks, several at a time, and keeps what was seen so that a check can be resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Protocol

from arena.checks.tasks.judge import TaskCheckClient
from arena.checks.tasks.static import find_duplicates, static_items
from arena.errors import InfrastructureError, RecordError
from arena.package import PACKAGE, closure_hash
from arena.results.check import CheckItem, CheckOutcome, TaskCheck
from arena.results.messages import bare, message
from arena.runs import records
from arena.runs.sharing import share_out
from arena.task.definition import Task
from arena.task.options import Options

CHECKS = ("arena.checks.tasks.run",)
"""what checks: these modules, and all that they import or start"""
MUTANTS = ("arena.checks.tasks.mutant_items",)
"""has no say in a check but in that of mutants, whose results are kept without a key of the code"""
Watch = Callable[[TaskCheck], None]


class TaskJudge(Protocol):
    """A judge that checks one task at a time."""

    def check(
        self, task: Path, options: Options, most_mutants: int = 0, *, every_launch: bool = False, timing: bool = True
    ) -> TaskCheck:
        """Check a task folder; raises `InfrastructureError` where no verdict can be given."""

    def close(self) -> None:
        """End it."""

    def kill(self) -> None:
        """End it at once, whatever it is doing."""


@dataclass(frozen=True)
class CheckPlan:
    """A plan of a check: on which platform, how thoroughly, with how many mutants (0: everything but them).

    There is a judge for each of `devices`, whose numbers are those of GPUs; None is the first one, or the CPU.
    """

    platform: str
    options: Options
    most_mutants: int = 0
    devices: tuple[int | None, ...] = (None,)
    folder: Path | None = None
    resume: bool = False
    every_launch: bool = False
    """for other GPUs build every launch of every case, where else each signature of a Triton kernel is built once"""
    timing: bool = True
    """on a GPU, time kernels against themselves"""

    @property
    def how(self) -> str:
        """Return what must agree for an old check to stand; but for mutants, which take hours, also the code."""
        more = f"{' every launch' if self.every_launch else ''}{'' if self.timing else ' untimed'}"
        code = "" if self.most_mutants else f" {code_key()}"
        return f"{self.platform} {self.most_mutants} {self.options}{more}{code}"

    def kept(self, task: Task) -> Path | None:
        """Return where a task's check is written."""
        kind = "mutants" if self.most_mutants else "items"
        return self.folder / kind / f"{task.id.replace('/', '.')}.json" if self.folder is not None else None


@cache
def code_key() -> str:
    """Return a hash of the code that decides a check, mutants aside: what `CHECKS` need, judge and workers included."""
    return closure_hash(CHECKS, without=MUTANTS, package=PACKAGE)[:16]


def default_jobs() -> int:
    """Judges side by side on the CPU platform: one a core. On a GPU two would disturb each other's timing."""
    return max(1, os.cpu_count() or 1)


def check_tasks(
    chosen: Mapping[str, Task],
    corpus: Mapping[str, Task],
    plan: CheckPlan,
    ended: Watch,
    make_judge: Callable[[str, int | None], TaskJudge] = TaskCheckClient,
) -> list[TaskCheck]:
    """Check the chosen tasks, in any order; `corpus` holds all that they must differ from. `ended` is told of each."""
    duplicates = find_duplicates(corpus)
    checks = {}
    left = []
    for task in chosen.values():
        old = _recorded(task, plan, duplicates)
        if old is None:
            left.append(task)
        else:
            checks[task.id] = old
            ended(old)
    for check in _run(left, plan, duplicates, make_judge):
        checks[check.task] = check
        ended(check)
    return [checks[name] for name in chosen]


def _run(
    tasks: list[Task],
    plan: CheckPlan,
    duplicates: Mapping[str, str],
    make_judge: Callable[[str, int | None], TaskJudge],
) -> Iterator[TaskCheck]:
    """Each judge takes one task after the other."""
    if not tasks:
        return
    judges = [make_judge(plan.platform, device) for device in plan.devices[: len(tasks)]]

    def one(task: Task, judge: TaskJudge) -> TaskCheck:
        return _checked(task, judge, plan, duplicates)

    try:
        yield from share_out(tasks, judges, one, lambda judge: judge.kill())
    finally:
        for judge in judges:
            judge.close()


def _checked(task: Task, judge: TaskJudge, plan: CheckPlan, duplicates: Mapping[str, str]) -> TaskCheck:
    static = _static(task, plan, duplicates)
    try:
        found = judge.check(
            task.path, plan.options, plan.most_mutants, every_launch=plan.every_launch, timing=plan.timing
        )
    except InfrastructureError as problem:
        broken = CheckItem("harness", CheckOutcome.FAILED, message("check_no_verdict", problem=bare(str(problem))))
        return TaskCheck(task.id, task.content_hash, plan.platform, (*static, broken), how=plan.how)
    check = replace(found, items=(*static, *found.items), how=plan.how)
    path = plan.kept(task)
    if path is not None:
        records.write(path, check)
    return check


def _static(task: Task, plan: CheckPlan, duplicates: Mapping[str, str]) -> tuple[CheckItem, ...]:
    return () if plan.most_mutants else tuple(static_items(task, duplicates))


def _recorded(task: Task, plan: CheckPlan, duplicates: Mapping[str, str]) -> TaskCheck | None:
    """An earlier check of the same task, asked for in the same way; one that failed is made again.

    What other tasks and the level of the corpus decide is seen afresh: neither is in the task's hash.
    """
    path = plan.kept(task)
    if not plan.resume or path is None or not path.is_file():
        return None
    try:
        old = records.read(path, TaskCheck)
    except RecordError:
        return None
    if (old.task_hash, old.how) != (task.content_hash, plan.how) or old.failed:
        return None
    static = _static(task, plan, duplicates)
    names = {item.name for item in static}
    return replace(old, items=(*static, *(item for item in old.items if item.name not in names)))

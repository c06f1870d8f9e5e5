"""Checks many tasks, several at a time, and keeps what was seen so that a check can be resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

from arena import records
from arena.checking.static import find_twins, static_items
from arena.errors import InfrastructureError, RecordError
from arena.judge.client import JudgeClient
from arena.judge.messages import Options
from arena.model.check import Item, Outcome, TaskCheck
from arena.model.task import Task

Watch = Callable[[TaskCheck], None]


class Judge(Protocol):
    """What examines one task at a time."""

    def examine(self, task: Path, options: Options, most_mutants: int = 0) -> TaskCheck:
        """Check a task folder; raises `InfrastructureError` where no verdict can be given."""

    def close(self) -> None:
        """End it."""


@dataclass(frozen=True)
class Plan:
    """What to check of each task: on which platform, how thoroughly, with how many mutants (0: everything but them)."""

    platform: str
    options: Options
    most_mutants: int = 0
    jobs: int = 1
    folder: Path | None = None
    resume: bool = False

    @property
    def how(self) -> str:
        """What must agree for an old check to stand."""
        return f"{self.platform} {self.most_mutants} {self.options}"

    def kept(self, task: Task) -> Path | None:
        """Where a task's check is written."""
        kind = "mutants" if self.most_mutants else "items"
        return self.folder / kind / f"{task.id.replace('/', '.')}.json" if self.folder is not None else None


def default_jobs(platform: str) -> int:
    """One judge a core on the CPU platform; one on a GPU, where two would disturb each other's timing."""
    return max(1, os.cpu_count() or 1) if platform == "cpu" else 1


def check_tasks(
    chosen: Mapping[str, Task],
    corpus: Mapping[str, Task],
    plan: Plan,
    ended: Watch,
    make_judge: Callable[[str], Judge] = JudgeClient,
) -> list[TaskCheck]:
    """Check the chosen tasks, in any order; `corpus` holds all that they must differ from. `ended` is told of each."""
    twins = find_twins(corpus)
    checks = {}
    left = []
    for task in chosen.values():
        old = _recorded(task, plan)
        if old is None:
            left.append(task)
        else:
            checks[task.id] = old
            ended(old)
    for check in _run(left, plan, twins, make_judge):
        checks[check.task] = check
        ended(check)
    return [checks[name] for name in chosen]


def _run(
    tasks: list[Task], plan: Plan, twins: Mapping[str, str], make_judge: Callable[[str], Judge]
) -> Iterator[TaskCheck]:
    """Each judge takes one task after the other."""
    jobs = min(plan.jobs, len(tasks))
    if not jobs:
        return
    free: SimpleQueue[Judge] = SimpleQueue()
    judges = [make_judge(plan.platform) for _ in range(jobs)]
    for judge in judges:
        free.put(judge)

    def one(task: Task) -> TaskCheck:
        judge = free.get()
        try:
            return _checked(task, judge, plan, twins)
        finally:
            free.put(judge)

    try:
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            for done in as_completed([pool.submit(one, task) for task in tasks]):
                yield done.result()
    finally:
        for judge in judges:
            judge.close()


def _checked(task: Task, judge: Judge, plan: Plan, twins: Mapping[str, str]) -> TaskCheck:
    static = () if plan.most_mutants else tuple(static_items(task, twins))
    try:
        found = judge.examine(task.path, plan.options, plan.most_mutants)
    except InfrastructureError as problem:
        broken = Item("harness", Outcome.FAILED, f"no verdict: {problem}")
        return TaskCheck(task.id, task.content_hash, plan.platform, (*static, broken), how=plan.how)
    check = replace(found, items=(*static, *found.items), how=plan.how)
    path = plan.kept(task)
    if path is not None:
        records.write(path, check)
    return check


def _recorded(task: Task, plan: Plan) -> TaskCheck | None:
    """An earlier check of the same task, asked for in the same way."""
    path = plan.kept(task)
    if not plan.resume or path is None or not path.is_file():
        return None
    try:
        old = records.read(path, TaskCheck)
    except RecordError:
        return None
    return old if (old.task_hash, old.how) == (task.content_hash, plan.how) else None

"""Imports many problems into a corpus, checks each task, and keeps a table so that an import can be resumed."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol

from arena.checks.tasks.judge import TaskCheckClient
from arena.checks.tasks.run import CheckPlan, TaskJudge, check_tasks
from arena.checks.tasks.static import fingerprints
from arena.errors import FileError, UsageError
from arena.integrations.importers import table
from arena.integrations.importers.cases import CaseDrawer
from arena.integrations.importers.domain import find_domain
from arena.integrations.importers.problem import Problem, Reason, Skipped
from arena.integrations.importers.program import ProblemProgram
from arena.integrations.importers.table import ProblemRow
from arena.integrations.importers.writing import write_task
from arena.results.check import CheckItem, TaskCheck
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task, TaskType
from arena.task.options import Options

Watch = Callable[[ProblemRow], None]
_MATTERS = " matters"


class Read(Protocol):
    """Reads one problem of a format."""

    def __call__(self, path: Path, only: Container[str] | None = None, zeros: Container[str] = ()) -> Problem:
        """Return the problem, with `only` these sizes left open and these weights 0; raises `Skipped`."""


class Format(Protocol):
    """The functions that the module of a format provides."""

    @property
    def read(self) -> Read:
        """The reader of one problem."""

    @property
    def task_name(self) -> Callable[[Path], str]:
        """The name of a problem's task."""

    @property
    def files(self) -> Callable[[Path], Sequence[Path]]:
        """The files that a problem is made from."""


@dataclass
class Importer:
    """Turns problems into checked tasks below `corpus`; a context manager that holds one judge."""

    corpus: Path
    task_type: TaskType
    source: Format
    rows: dict[str, ProblemRow] = field(default_factory=dict)
    _judge: TaskCheckClient | None = None
    _prints: dict[object, str] = field(default_factory=dict)

    def __enter__(self) -> Importer:
        """Read the table of an earlier import."""
        self.rows = table.read(self.corpus)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the judge."""
        if self._judge is not None:
            self._judge.close()

    def run(self, problems: Mapping[Path, str], watch: Watch) -> list[ProblemRow]:
        """Import every problem that an earlier import has not finished; `watch` is told of each."""
        done = []
        for path, suite in problems.items():
            task_id = f"{self.task_type}/{suite}/{self.source.task_name(path)}"
            row = self._known(task_id, table.key_of(self.source.files(path)))
            if row is None:
                row = self._import(path, task_id)
                self.rows[task_id] = row
                table.write(self.corpus, self.rows.values())
            done.append(row)
            watch(row)
        return done

    def _known(self, task_id: str, key: str) -> ProblemRow | None:
        row = self.rows.get(task_id)
        if row is None or row.key != key or row.outcome == table.NO_VERDICT:
            return None
        if row.outcome != table.IMPORTED:
            return row
        try:
            self._remember(load_task(self.corpus / task_id))
        except (FileError, OSError):
            return None
        return row

    def _import(self, path: Path, task_id: str) -> ProblemRow:
        started = time.monotonic()
        folder = self.corpus / task_id
        outcome, reason, detail = table.IMPORTED, "", ""
        try:
            detail = self._convert(path, folder)
        except Skipped as problem:
            outcome, reason, detail = table.SKIPPED, problem.reason.value, problem.detail
        except JudgeFailed as problem:
            outcome, detail = table.NO_VERDICT, str(problem)
        if outcome != table.IMPORTED and folder.exists():
            shutil.rmtree(folder)
        origin = f"{path.parent.name}/{path.name}"
        seconds = f"{time.monotonic() - started:.1f}"
        return ProblemRow(origin, task_id, outcome, reason, detail, seconds, table.key_of(self.source.files(path)))

    def _convert(self, path: Path, folder: Path) -> str:
        """Write and check the task; weights on which no output depends are taken out. Returns a note."""
        zeros: set[str] = set()
        self._write(path, folder, zeros)
        check = self._check(folder)
        ignored = _ignored(check)
        if ignored and all(name in self._weights for name in ignored):
            zeros = ignored
            self._write(path, folder, zeros)
            check = self._check(folder)
        if [item.name for item in check.failed] == ["work"]:
            # Counted in one small case, of which a window or a stride may leave a border unread.
            self._write(path, folder, zeros, draw=2)
            check = self._check(folder)
        if check.failed:
            raise Skipped(Reason.CHECK, "; ".join(f"{item.name}: {item.detail}" for item in check.failed))
        return f"0, since no output depends on them: {', '.join(sorted(zeros))}" if zeros else ""

    def _write(self, path: Path, folder: Path, zeros: Container[str], draw: int = 1) -> None:
        """Find the axes, read the problem again with these alone left open, draw cases, write."""
        wide = self.source.read(path, zeros=zeros)
        axes = {axis.name for axis in find_domain(ProblemProgram(wide), wide.name).axes}
        problem = self.source.read(path, only=axes, zeros=zeros)
        program = ProblemProgram(problem)
        domain = find_domain(program, problem.name)
        drawer = CaseDrawer(program, domain, f"{problem.name} {draw}")
        drawer.draw()
        self._weights = set(domain.base.weights)
        write_task(folder, problem, domain, drawer)

    _weights: set[str] = field(default_factory=set)

    def _check(self, folder: Path) -> TaskCheck:
        try:
            task = load_task(folder)
        except FileError as problem:
            raise Skipped(Reason.CASES, str(problem)) from problem
        twin = self._remember(task)
        if twin:
            raise Skipped(Reason.CHECK, f"unlike others: is {twin} under another name")
        plan = CheckPlan("cpu", Options())
        (check,) = check_tasks({task.id: task}, {task.id: task}, plan, lambda one: None, self._kept_judge)
        harness = next((item for item in check.failed if item.name == "harness"), None)
        if harness is not None:
            raise JudgeFailed(harness.detail)
        return check

    def _remember(self, task: Task) -> str:
        """Return the id of an imported task that is the same but for the name."""
        others = [self._prints.setdefault(print_, task.id) for print_ in fingerprints(task)]
        return next((other for other in others if other != task.id), "")

    def _kept_judge(self, platform: str, device: int | None) -> TaskJudge:
        if self._judge is None:
            self._judge = TaskCheckClient(platform)
        return _KeptJudge(self._judge)


class JudgeFailed(Exception):
    """The judge failed; the problem is tried again by the next import."""


class _KeptJudge:
    """A judge that outlives a check."""

    def __init__(self, judge: TaskCheckClient) -> None:
        self.check = judge.check

    def close(self) -> None:
        """Keep it for the next task."""

    kill = close


def _ignored(check: TaskCheck) -> set[str]:
    """The inputs on which no output depends."""
    failed: tuple[CheckItem, ...] = check.failed
    return {item.name.removesuffix(_MATTERS) for item in failed if item.name.endswith(_MATTERS)}


def require_trust(trust: bool, checkout: Path) -> None:
    """Raise `UsageError` unless the user trusts the checkout."""
    if not checkout.is_dir():
        raise UsageError(f"{checkout}: no such folder; expected a checkout")
    if not trust:
        raise UsageError(
            f"{checkout}: its code runs during the import, and as reference inside every judge, without a sandbox. "
            "A reference that is not honest decides every verdict. Read the code, then add --trust"
        )

"""How good are the tasks themselves? One page from the checks that were kept, on the CPU and on a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from arena.errors import UsageError
from arena.model.check import CheckOutcome, MutantFate, Speed, TaskCheck
from arena.model.task import Task, TaskType
from arena.reporting.formats import NONE
from arena.runs import records

TEMPLATES = Path(__file__).parent / "templates"
_HASH_DIGITS = 8


@dataclass(frozen=True)
class Checks:
    """What is known of one task: its items and mutants on the CPU, its items on a GPU; None where never checked."""

    task: Task
    items: TaskCheck | None
    mutants: TaskCheck | None
    gpu: TaskCheck | None

    @property
    def name(self) -> str:
        """Suite and name, as a row of its task type."""
        return f"{self.task.suite}/{self.task.name}"

    @property
    def version(self) -> str:
        """The beginning of the hash of what was checked."""
        return self.task.content_hash[:_HASH_DIGITS]

    @property
    def counted(self) -> Sequence[MutantFate]:
        """The mutants that count."""
        return () if self.mutants is None else self.mutants.counted

    @property
    def score(self) -> str:
        """`39 of 40`: mutants that build and were rejected."""
        return _score(self.counted) if self.counted else NONE

    @property
    def share(self) -> str:
        """The mutation score in per cent."""
        score = self.mutants.mutation_score if self.mutants is not None else None
        return NONE if score is None else f"{100 * score:.0f} %"

    @property
    def equivalent(self) -> int:
        """Mutants that the task declares to compute the same."""
        return sum(bool(fate.equivalent) for fate in self.mutants.mutants) if self.mutants is not None else 0

    @property
    def aa(self) -> str:
        """Greatest deviation of an A/A speedup from 1."""
        return NONE if self.gpu is None or self.gpu.aa_worst is None else f"{100 * self.gpu.aa_worst:.2f} %"

    @property
    def latency(self) -> str:
        """The baseline kernel on the largest case."""
        speed = self._speed("starting")
        return NONE if speed is None else f"{1e3 * speed.latency_ms:.3g} µs"

    def fraction(self, kernel: str) -> str:
        """Which part of the roofline a kernel reaches on the largest case."""
        speed = self._speed(kernel)
        return NONE if speed is None or speed.roofline_fraction is None else f"{speed.roofline_fraction:.3f}"

    @property
    def times_the_bound(self) -> str:
        """The baseline kernel in units of the larger of roofline and launch floor."""
        speed = self._speed("starting")
        return NONE if speed is None else f"{speed.times_the_bound:.1f}"

    @property
    def declared(self) -> Sequence[tuple[str, str]]:
        """Items that do not hold, each with its reason."""
        found = [item for check in (self.items, self.gpu) if check for item in check.items]
        return sorted({(item.name, item.detail) for item in found if item.outcome is CheckOutcome.DECLARED})

    def _speed(self, kernel: str) -> Speed | None:
        speeds = self.gpu.speeds if self.gpu is not None else ()
        return next((speed for speed in speeds if speed.kernel == kernel), None)


def gather(tasks: Iterable[Task], folder: Path) -> list[Checks]:
    """The kept checks of every task, as `arena tasks check --out FOLDER` wrote them; not those of another version."""
    found = {kind: _read(folder / kind) for kind in ("cpu/items", "cpu/mutants", "cuda/items", "rocm/items")}
    if not any(found.values()):
        raise UsageError(f"{folder} holds no checks; `arena tasks check` and `arena tasks check --mutants` make some")
    rows = []
    for task in tasks:
        now = {kind: check for kind, checks in found.items() if (check := _current(checks, task)) is not None}
        gpu = now.get("cuda/items") or now.get("rocm/items")
        rows.append(Checks(task, now.get("cpu/items"), now.get("cpu/mutants"), gpu))
    return rows


def render(rows: Sequence[Checks]) -> str:
    """The page, as markdown."""
    engine = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    by_type = _by_type(rows)
    devices = sorted({row.gpu.device for row in rows if row.gpu is not None})
    fates = [fate for row in rows for fate in row.counted]
    return engine.get_template("task_quality.md.j2").render(
        types=by_type,
        devices=devices,
        rejected=sum(not fate.survived for fate in fates),
        mutants=len(fates),
        declared=[(row, row.declared) for row in rows if row.declared],
        suites=_suites(rows),
        operators=_operators(rows, by_type),
        survivors=[(row, fate) for row in rows for fate in row.counted if fate.survived],
    )


def _by_type(rows: Sequence[Checks]) -> dict[TaskType, list[Checks]]:
    """The rows of each task type that occurs."""
    groups = {kind: [row for row in rows if row.task.task_type is kind] for kind in TaskType}
    return {kind: group for kind, group in groups.items() if group}


def _operators(
    rows: Sequence[Checks], by_type: Mapping[TaskType, Sequence[Checks]]
) -> Sequence[tuple[str, Sequence[str], str, str]]:
    """Per operator of mutation: its score in each task type, in all, and in per cent."""
    operators = sorted({fate.operator for row in rows for fate in row.counted})
    lines = []
    for operator in operators:
        groups = [
            [fate for row in group for fate in row.counted if fate.operator == operator] for group in by_type.values()
        ]
        fates = [fate for group in groups for fate in group]
        lines.append((operator, [_score(group) if group else NONE for group in groups], _score(fates), _share(fates)))
    return lines


def _score(fates: Sequence[MutantFate]) -> str:
    return f"{sum(not fate.survived for fate in fates)} of {len(fates)}"


def _share(fates: Sequence[MutantFate]) -> str:
    return f"{100 * sum(not fate.survived for fate in fates) / len(fates):.1f} %" if fates else NONE


def _suites(rows: Sequence[Checks]) -> Sequence[tuple[str, int, str, str, str]]:
    """Per suite: how many tasks, the score of their mutants, also in per cent, and their worst A/A deviation."""
    suites: dict[str, list[Checks]] = {}
    for row in rows:
        suites.setdefault(f"{row.task.task_type}/{row.task.suite}", []).append(row)
    lines = []
    for suite, group in suites.items():
        deviations = [row.gpu.aa_worst for row in group if row.gpu is not None and row.gpu.aa_worst is not None]
        worst = f"{100 * max(deviations):.2f} %" if deviations else NONE
        fates = [fate for row in group for fate in row.counted]
        lines.append((suite, len(group), _score(fates), _share(fates), worst))
    return lines


def _read(folder: Path) -> Mapping[str, TaskCheck]:
    checks = (records.read(path, TaskCheck) for path in sorted(folder.glob("*.json")))
    return {check.task: check for check in checks}


def _current(checks: Mapping[str, TaskCheck], task: Task) -> TaskCheck | None:
    check = checks.get(task.id)
    return check if check is not None and check.task_hash == task.content_hash else None

"""How good are the tasks themselves? One page from checks that were kept, and from a run of baselines and experts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from arena.errors import UsageError
from arena.reports.formats import NONE
from arena.reports.task_versions import Versions, all_holds, held_cases, version_of
from arena.results.check import CheckOutcome, MutantFate, TaskCheck
from arena.results.record import LONG_MS, CaseResult, CaseTiming, Trial
from arena.runs import records
from arena.runs.submission import read_folder
from arena.task.definition import Task, TaskType
from arena.task.rules import UNSTABLE

TEMPLATES = Path(__file__).parent / "templates"
BASELINE, EXPERT = "noop", "expert"
"""the agents whose trials say how fast a task's own kernels are"""
_HASH_DIGITS = 8
_Timings = Mapping[str, Sequence[CaseTiming]]


@dataclass(frozen=True)
class Checks:
    """What is known of one task: items and mutants as checked, None where never; timings of each agent in a run."""

    task: Task
    items: TaskCheck | None
    mutants: TaskCheck | None
    timings: _Timings

    @property
    def name(self) -> str:
        """Suite and name, as a row of its task type."""
        return f"{self.task.suite}/{self.task.name}"

    @property
    def version(self) -> str:
        """The beginning of the content hash."""
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
    def deviation(self) -> float | None:
        """Greatest deviation from 1 of the speedup of the baseline kernel over itself, where that takes 20 us or more.

        A noisy timing does not count: it says itself that it decides nothing.
        """
        own = [one for one in self.timings.get(BASELINE, ()) if one.baseline_ms.value >= LONG_MS and not one.noisy]
        return max((abs(one.speedup.value - 1) for one in own), default=None)

    @property
    def aa(self) -> str:
        """That deviation in per cent."""
        return NONE if self.deviation is None else f"{100 * self.deviation:.2f} %"

    @property
    def latency(self) -> str:
        """The baseline on the largest case: a kernel, or PyTorch."""
        known = [self._largest(agent) for agent in (BASELINE, EXPERT)]
        return next((f"{1e3 * one.baseline_ms.value:.3g} µs" for one in known if one is not None), NONE)

    def fraction(self, agent: str) -> str:
        """Which part of the roofline a kernel reaches on the largest case."""
        timing = self._largest(agent)
        return NONE if timing is None or timing.roofline_fraction is None else f"{timing.roofline_fraction:.3f}"

    @property
    def declared(self) -> Sequence[tuple[str, str]]:
        """Items that do not hold, each with its reason."""
        items = self.items.items if self.items is not None else ()
        found = {(item.name, item.detail) for item in items if item.outcome is CheckOutcome.DECLARED}
        return sorted(found | {("long enough", reason) for reason in [self.task.latency_bound] if reason})

    def _largest(self, agent: str) -> CaseTiming | None:
        return max(self.timings.get(agent, ()), key=lambda one: one.baseline_ms.value, default=None)


def gather(
    tasks: Iterable[Task], folder: Path, run: Path | None = None, versions: Versions | None = None
) -> tuple[list[Checks], str]:
    """Return what was kept of every task and still holds, and the name of the device that the run timed it on.

    Args:
        tasks: the tasks.
        folder: checks on the CPU, as `arena tasks check --out FOLDER` wrote them.
        run: the folder of a run with the agents `noop` and `expert`; None: no timings.
        versions: tasks as they were when that was kept, by content hash; without them a changed task has nothing.

    Raises:
        UsageError: where there are no checks.
    """
    found = {kind: _read(folder / kind) for kind in ("cpu/items", "cpu/mutants")}
    if not any(found.values()):
        raise UsageError(f"{folder} holds no checks; `arena tasks check` and `arena tasks check --mutants` make some")
    kept = None if run is None else read_folder(run)
    trials = () if kept is None else kept.trials
    device = "" if kept is None else kept.info.environment.device.name
    by_agent = {(one.task, one.agent): one for one in trials}
    versions = versions or {}
    rows = []
    for task in tasks:
        items, mutants = (_holding(found[kind], task, versions) for kind in ("cpu/items", "cpu/mutants"))
        own = {agent: _timings(by_agent.get((task.id, agent)), task, versions) for agent in (BASELINE, EXPERT)}
        rows.append(Checks(task, items, mutants, own))
    return rows, device


def render(rows: Sequence[Checks], device: str = "") -> str:
    """The page, as markdown."""
    engine = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    by_type = _by_type(rows)
    fates = [fate for row in rows for fate in row.counted]
    return engine.get_template("task_quality.md.j2").render(
        types=by_type,
        device=device,
        rejected=sum(not fate.survived for fate in fates),
        mutants=len(fates),
        declared=[(row, row.declared) for row in rows if row.declared],
        suites=_suites(rows),
        operators=_operators(rows, by_type),
        forms=_unstable_forms(rows),
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


def _unstable_forms(rows: Sequence[Checks]) -> Sequence[tuple[str, int, int, int, int]]:
    """Per form of some kept check: tasks that have it, and in how many it is rejected, declared and accepted."""
    outcomes: dict[str, list[CheckOutcome]] = {}
    for row in rows:
        for item in row.items.items if row.items is not None else ():
            if item.name.startswith(UNSTABLE):
                outcomes.setdefault(item.name.removeprefix(UNSTABLE), []).append(item.outcome)
    lines = []
    for form, found in sorted(outcomes.items()):
        rejected, declared = found.count(CheckOutcome.PASSED), found.count(CheckOutcome.DECLARED)
        lines.append((form, len(found), rejected, declared, len(found) - rejected - declared))
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
        deviations = [row.deviation for row in group if row.deviation is not None]
        worst = f"{100 * max(deviations):.2f} %" if deviations else NONE
        fates = [fate for row in group for fate in row.counted]
        lines.append((suite, len(group), _score(fates), _share(fates), worst))
    return lines


def held_results(trial: Trial | None, task: Task, versions: Versions) -> Sequence[CaseResult]:
    """Return the timed results of a trial that hold for a task as it is, in the order of its cases.

    Args:
        trial: of any version of the task; None has no results.
        task: the task as it is.
        versions: tasks as they were, by content hash; without its version a changed task has no results.
    """
    if trial is None or trial.evaluation is None:
        return ()
    cases = trial.evaluation.cases
    if trial.task_hash != task.content_hash:
        cases = held_cases(versions.get(trial.task_hash), task, cases)
    return [case for case in cases if case.timing is not None]


def _timings(trial: Trial | None, task: Task, versions: Versions) -> Sequence[CaseTiming]:
    return [case.timing for case in held_results(trial, task, versions) if case.timing is not None]


def _read(folder: Path) -> Mapping[str, TaskCheck]:
    checks = (records.read(path, TaskCheck) for path in sorted(folder.glob("*.json")))
    return {check.task: check for check in checks}


def _holding(checks: Mapping[str, TaskCheck], task: Task, versions: Versions) -> TaskCheck | None:
    check = checks.get(task.id)
    if check is None or check.task_hash == task.content_hash:
        return check
    return check if all_holds(versions.get(check.task_hash), version_of(task)) else None

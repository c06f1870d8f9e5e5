"""What the page template shows, as text: no number is formatted inside the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena.model.record import Split
from arena.model.verdict import Status
from arena.reporting import formats
from arena.reporting.case_frame import Cell, HeldoutOutcome, case_cells, estimate_of
from arena.reporting.groups import Group
from arena.reporting.measure import Unit
from arena.reporting.measures import MEASURES
from arena.reporting.rows import TrialRow
from arena.reporting.tables import trial_cells
from arena.reporting.target_views import Reach, UseView, reach, use_views
from arena.runs.records import RunRecords


@dataclass(frozen=True)
class RunView:
    """The head of one run."""

    name: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class CaseView:
    """One case of one trial."""

    label: str
    split: str
    kind: str
    baseline: str
    candidate: str
    outcome: str
    latency: str
    speedup: str
    noisy: bool
    detail: str


@dataclass(frozen=True)
class TrialView:
    """One line of the task table. `tone` is `good`, `bad` or `none`; `reach`: for which GPUs it builds.

    `transcript` links to the page of what the agent did, where there is one.
    """

    agent: str
    attempt: str
    status: str
    tone: str
    speedup: str
    seen: str
    heldout: str
    heldout_tone: str
    reach: Reach
    detail: str
    cases: tuple[CaseView, ...]
    uses: tuple[UseView, ...]
    transcript: str = ""


@dataclass(frozen=True)
class TaskSection:
    """All trials of one task."""

    name: str
    trials: tuple[TrialView, ...]

    @property
    def cases(self) -> int:
        """How many case results there are to expand."""
        return sum(len(trial.cases) for trial in self.trials)

    @property
    def uses(self) -> int:
        """How many kernels on targets there are to expand."""
        return sum(len(trial.uses) for trial in self.trials)


@dataclass(frozen=True)
class TypeView:
    """All tasks of one task type."""

    name: str
    tasks: tuple[TaskSection, ...]


@dataclass(frozen=True)
class MeasureView:
    """One measure in every group: over the mean of attempts and, where that says more, over the best."""

    title: str
    name: str
    timed: bool
    values: tuple[str, ...]


def run_view(run: RunRecords) -> RunView:
    """Platform, device, isolation and versions of a run."""
    info, device = run.info, run.info.environment.device
    found = {"arena": info.arena_version, **info.environment.versions}
    versions = ", ".join(f"{name} {version}" for name, version in sorted(found.items()))
    facts = [
        ("platform", device.platform if device.vendor == device.platform else f"{device.platform} ({device.vendor})"),
        ("device", f"{device.name}, {device.arch}, wave size {device.wave_size}"),
        ("driver", device.driver or "not stated"),
        ("isolation", info.environment.isolation),
        ("versions", versions),
        ("agents", ", ".join(info.agents)),
        ("trials", f"{len(info.planned)} planned, {len(run.trials)} recorded; {_plan(run)}"),
        ("started", info.started_at),
        ("config", info.config if len(info.config) <= 120 and "\n" not in info.config else "in the run's head"),
    ]
    return RunView(info.run, tuple(facts))


def type_views(rows: Sequence[TrialRow]) -> list[TypeView]:
    """The task table: by task type, then by task."""
    several = any(row.attempt > 1 for row in rows)
    views = []
    for task_type in sorted({row.task_type for row in rows}):
        mine = [row for row in rows if row.task_type == task_type]
        tasks = dict.fromkeys(row.task for row in mine)
        found = (
            TaskSection(
                task.removeprefix(f"{task_type}/"), tuple(_trial(row, several) for row in mine if row.task == task)
            )
            for task in sorted(tasks)
        )
        views.append(TypeView(task_type, tuple(found)))
    return views


def measure_views(groups: Sequence[Group], *, best: bool) -> list[MeasureView]:
    """Every measure as text, in the order of the groups; those that no group can state are left out."""
    views = []
    for measure in MEASURES:
        known = [(group.best if best else group.mean).get(measure.name) for group in groups]
        if any(value is not None for value in known):
            as_text = formats.counted if measure.own_count else formats.quantity
            values = tuple(as_text(value, measure.unit) for value in known)
            views.append(MeasureView(measure.title, measure.name, measure.timed, values))
    return views


def kind_lines(overall: Sequence[Group]) -> list[tuple[str, str, str, str]]:
    """Agent, kind, passed of all, drop: one line per agent and kind of held-out case."""
    return [
        (group.label, kind.kind, formats.ratio_of(kind.passed, kind.cases), formats.quantity(kind.drop, Unit.SHARE))
        for group in overall
        for kind in group.kinds
    ]


def outcome_name(outcome: HeldoutOutcome) -> str:
    """An outcome in words."""
    return str(outcome).replace("_", " ")


def _plan(run: RunRecords) -> str:
    info = run.info
    parts = ((len(info.agents), "agent"), (len(info.tasks), "task"), (info.attempts, "attempt"))
    return " × ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in parts)


def _trial(row: TrialRow, several: bool) -> TrialView:
    cells = trial_cells(row)
    return TrialView(
        agent=row.label,
        attempt=f"#{row.attempt}" if several else "",
        status=str(cells["status"]).replace("_", " "),
        tone=tone(row),
        speedup=formats.speedup(estimate_of(cells, "speedup")),
        seen=_passed(cells, Split.SEEN),
        heldout=_passed(cells, Split.HELDOUT) if row.heldout_ran else formats.NONE,
        heldout_tone=("good" if row.heldout_correct else "bad") if row.heldout_ran else "none",
        reach=reach(row),
        detail=row.detail,
        cases=tuple(case_view(case_cells(case.result, case.outcome)) for case in row.cases),
        uses=use_views(row),
        transcript=row.page,
    )


def tone(row: TrialRow) -> str:
    """`good`, `bad` or `none`, by how a trial ended."""
    if row.status in (None, Status.HARNESS_ERROR, Status.NOT_RUN):
        return "none"
    return "good" if row.status is Status.PASSED else "bad"


def _passed(cells: Mapping[str, Cell], split: Split) -> str:
    return formats.ratio_of(cells[f"{split}_passed"], cells[f"{split}_cases"])


def case_view(cells: Mapping[str, Cell]) -> CaseView:
    """One case of a trial as text."""
    before, after = (estimate_of(cells, name) for name in ("baseline_ms", "candidate_ms"))
    return CaseView(
        label=str(cells["shape"]),
        split="held-out" if cells["split"] == Split.HELDOUT else "seen",
        kind=str(cells["kind"]),
        baseline=str(cells["baseline"]).replace("_", " "),
        candidate=str(cells["candidate"]).replace("_", " "),
        outcome=str(cells["outcome"] or "").replace("_", " "),
        latency=f"{formats.latency(before)} → {formats.latency(after)}" if before and after else formats.NONE,
        speedup=formats.speedup(estimate_of(cells, "speedup")),
        noisy=bool(cells["noisy"]),
        detail=str(cells["detail"]),
    )

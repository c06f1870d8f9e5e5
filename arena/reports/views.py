"""What the page template shows, as text: no number is formatted inside the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena.reports import formats
from arena.reports.case_frame import Cell, estimate_of
from arena.reports.groups import Group
from arena.reports.measures import MEASURES
from arena.reports.rows import TrialRow, mean_speedup
from arena.reports.tables import trial_cells
from arena.results.outcome import HeldoutOutcome, Outcome, ending
from arena.results.record import Split
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
class CellView:
    """One agent at one task in the table of tasks: a speedup or a status, counts, and a tone.

    The tone is empty where some attempts solve the task, and others do not.
    """

    agent: str
    lead: str
    rest: str
    tone: str


@dataclass(frozen=True)
class TaskLine:
    """One task in the table of tasks. `states` are what its filter knows: `solved`, `lost`, `failed`."""

    name: str
    link: str
    task_type: str
    suite: str
    states: str
    cells: tuple[CellView, ...]


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


def facts_line(runs: Sequence[RunRecords]) -> str:
    """Device, plan, recorded trials and day of the runs, in one line."""
    devices = dict.fromkeys(run.info.environment.device.name for run in runs)
    planned, recorded = sum(len(run.info.planned) for run in runs), sum(len(run.trials) for run in runs)
    days = sorted({run.info.started_at[:10] for run in runs})
    plans = dict.fromkeys(map(_plan, runs))
    return " · ".join([*devices, *plans, f"{recorded} of {planned} trials recorded", *days])


def task_lines(rows: Sequence[TrialRow], labels: Sequence[str]) -> list[TaskLine]:
    """The table of tasks: one line per task, one cell per agent, in the order of their labels."""
    found: dict[str, dict[str, list[TrialRow]]] = {}
    for row in rows:
        found.setdefault(row.task, {}).setdefault(row.label, []).append(row)
    lines = []
    for task, by_agent in sorted(found.items()):
        mine = [row for attempts in by_agent.values() for row in attempts]
        states = ["solved"] if all(row.outcome.solves for row in mine) else []
        states += ["lost"] if any(row.outcome is Outcome.OVERFIT for row in mine) else []
        states += ["failed"] if not all(row.correct for row in mine) else []
        cells = tuple(_cell(label, by_agent.get(label, [])) for label in labels)
        suite = task.rsplit("/", 1)[0]
        lines.append(TaskLine(task, page_name(task), mine[0].task_type, suite, " ".join(states), cells))
    return lines


def page_name(task: str) -> str:
    """The name of the page of a task."""
    return f"{task.replace('/', '.')}.html"


def _cell(label: str, attempts: Sequence[TrialRow]) -> CellView:
    if not attempts:
        return CellView(label, formats.NONE, "", "none")
    solved, tones = sum(row.outcome.solves for row in attempts), {tone(row) for row in attempts}
    speedups = [row.speedup for row in attempts if row.speedup]
    failed = next((row for row in attempts if not row.outcome.solves), attempts[0])
    lead = f"{mean_speedup(speedups).value:.2f}×" if speedups else ending(failed.outcome, failed.status)
    if len(attempts) > 1:
        rest = f"solved {solved}/{len(attempts)}"
    elif failed.outcome is Outcome.OVERFIT:
        rest = f"overfit, unseen {passed(trial_cells(failed), Split.HELDOUT)}"
    else:
        cells = trial_cells(attempts[0])
        counts = {"seen": passed(cells, Split.SEEN)} if not attempts[0].correct else {}
        counts |= {"unseen": passed(cells, Split.HELDOUT)} if attempts[0].heldout_ran else {}
        rest = ", ".join(f"{name} {count}" for name, count in counts.items() if count != formats.NONE)
    shade = "good" if solved == len(attempts) else "none" if tones == {"none"} else "" if solved else "bad"
    return CellView(label, lead, rest, shade)


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


def outcome_name(outcome: HeldoutOutcome) -> str:
    """An outcome in words."""
    return str(outcome).replace("_", " ")


def _plan(run: RunRecords) -> str:
    info = run.info
    parts = ((len(info.agents), "agent"), (len(info.tasks), "task"), (info.attempts, "attempt"))
    return " × ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in parts)


def tone(row: TrialRow) -> str:
    """`good`, `bad` or `none`, by the outcome of a trial: what is wrong on an unseen case is bad."""
    if row.outcome in (Outcome.NO_VERDICT, Outcome.NOT_HANDED_IN):
        return "none"
    return "good" if row.outcome.solves else "bad"


def passed(cells: Mapping[str, Cell], split: Split) -> str:
    """Return how many cases of a split passed, of all: `4/5`."""
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

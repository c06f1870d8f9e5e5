"""Set engines' kernels, baselines, experts and published agents' kernels beside the bound of each task's largest case.

The bound is the roofline of the declared bytes and operations, and a launch at least. Used by `tables.py`.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from arena.integrations.yardstick.table import MEAN, Row
from arena.reports.formats import NONE
from arena.reports.rows import served_speedup
from arena.reports.task_quality import BASELINE, EXPERT, held_results
from arena.reports.task_versions import Versions
from arena.results.environment import DeviceFacts
from arena.results.outcome import Outcome, outcome_of_trial
from arena.results.record import CaseTiming, Estimate, Split, Trial
from arena.results.verdict import Status
from arena.task.definition import Task
from figures import suites
from figures.svg import QUIET, Drawing

DRAWING = "reports/tables/speed-of-light.svg"
ENGINE, OURS, AGENT = "engine", "baseline", "published agent"
KINDS = (ENGINE, OURS, EXPERT, AGENT)
LIMITS = {"memory": "bytes", "arithmetic": "operations", "launch": "a launch"}
"""names of `suites.bound_of`, as the page says them"""
_ITSELF = Estimate(1.0, 1.0, 1.0)


class Kernel(NamedTuple):
    """One kernel on one case: its latency in ms, and its speedup over the baseline beside which it was timed."""

    latency_ms: Estimate
    speedup: Estimate
    name: str
    has_interval: bool = True
    """whether the record has an interval of the latency"""

    def beats(self, other: Kernel) -> bool:
        """Return whether the interval of its speedup lies above that of the other."""
        return self.speedup.low > other.speedup.high


@dataclass(frozen=True)
class Measured:
    """One task on its largest timed case that an agent can see. A kernel that was not timed there is missing."""

    task: str
    case: str = ""
    limit: str = ""
    """`memory`, `arithmetic` or `launch`: a key of `LIMITS`"""
    bound_ms: float = 0.0
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    """by their kind, one of `KINDS`"""
    served: Estimate | None = None
    """the served speedup of the expert, where the task has recorded traffic and all of it was timed"""

    @property
    def suite(self) -> str:
        """The task type and the suite."""
        return self.task.rpartition("/")[0]

    def share(self, kind: str) -> Estimate | None:
        """Return bound over latency with its interval; None where the kernel was not timed, or is lost in noise."""
        kernel = self.kernels.get(kind)
        if kernel is None or kernel.latency_ms.value <= 0:
            return None
        latency = kernel.latency_ms
        high = self.bound_ms / latency.low if latency.low > 0 else math.inf
        return Estimate(self.bound_ms / latency.value, self.bound_ms / latency.high, high)

    def beaten(self, kind: str) -> list[str]:
        """Return the kinds of kernel that beat the one of this kind."""
        other = self.kernels.get(kind)
        return [name for name, one in self.kernels.items() if other is not None and one.beats(other)]


class Group(NamedTuple):
    """The tasks of one corpus. Where it is not `whole`, tasks without an engine's kernel and an expert have no row."""

    name: str
    tasks: Sequence[Measured]
    whole: bool = True

    @property
    def shown(self) -> list[Measured]:
        """Return the tasks that have a row."""
        return [one for one in self.tasks if self.whole or {ENGINE, EXPERT} & set(one.kernels)]


class Published(NamedTuple):
    """The kernels that agents published, as judged here."""

    trials: Sequence[Trial] = ()
    names: Mapping[tuple[str, str, int], str] = {}
    """agent, problem and attempt of each, by the key of its trial"""


NONE_PUBLISHED = Published()


def gathered(
    tasks: Iterable[Task],
    facts: DeviceFacts,
    versions: Versions,
    trials: Sequence[Trial] = (),
    published: Published = NONE_PUBLISHED,
    engines: Sequence[Row] = (),
) -> list[Measured]:
    """Return what was timed on the largest seen case of each task.

    That is the case on which the baseline takes longest; where nothing that holds was timed, the case with the greatest
    bound.

    Args:
        tasks: the tasks as they are.
        facts: the device of all records, with its peaks.
        versions: tasks as they were when they were timed, by content hash.
        trials: of the agents `noop` and `expert`.
        published: kernels of agents.
        engines: rows of `arena yardstick`; they count where something else holds, in cases of the same shape.
    """
    return [_measured(task, facts, versions, trials, published, engines) for task in tasks]


def _measured(
    task: Task,
    facts: DeviceFacts,
    versions: Versions,
    trials: Sequence[Trial],
    published: Published,
    engines: Sequence[Row],
) -> Measured:
    own = {trial.agent: _by_shape(trial, task, versions) for trial in trials if trial.task == task.id}
    noop, expert = own.get(BASELINE, {}), own.get(EXPERT, {})
    others = [(trial, _by_shape(trial, task, versions)) for trial in published.trials if trial.task == task.id]
    bounds = {case.label: (case.id, *suites.bound_of(task, case.id, facts)) for case in task.seen if case.timed}
    least = {shape: least_ms for shape, (_, _, least_ms) in bounds.items()}
    everyone = [noop, expert, *(timings for _, timings in others)]
    longest = {shape: one.baseline_ms.value for timings in reversed(everyone) for shape, one in timings.items()}
    ranked = longest or least
    shape = max(ranked, key=lambda name: ranked[name])
    found: dict[str, Kernel | None] = {
        ENGINE: fastest_engine(task.id, shape, engines) if longest else None,
        OURS: _kernel(noop.get(shape), BASELINE) or _beside(everyone, shape),
        EXPERT: _kernel(expert.get(shape), EXPERT),
        AGENT: best(shape, others, published.names),
    }
    kernels = {kind: one for kind, one in found.items() if one is not None}
    return Measured(task.id, *bounds[shape], kernels, served_by_expert(task, versions, trials))


def served_by_expert(task: Task, versions: Versions, trials: Iterable[Trial]) -> Estimate | None:
    """Return the served speedup of the task's expert, weighted as the task is now; None unless all of it was timed."""
    weights = {case.label: case for case in task.cases if case.calls or case.gpu_share}
    found = {
        one.label: replace(one, calls=weights[one.label].calls, gpu_share=weights[one.label].gpu_share)
        for trial in trials
        if (trial.task, trial.agent) == (task.id, EXPERT)
        for one in held_results(trial, task, versions)
        if one.label in weights
    }
    return served_speedup(found.values()) if weights.keys() == found.keys() else None


def _by_shape(trial: Trial, task: Task, versions: Versions) -> dict[str, CaseTiming]:
    """Return the timings of seen cases in which every check passed, by shape: numbers of cases may have changed."""
    shapes = {case.label for case in task.seen if case.timed}
    return {
        one.label: one.timing
        for one in held_results(trial, task, versions)
        if one.timing is not None and one.split is Split.SEEN and one.candidate is Status.PASSED and one.label in shapes
    }


def _kernel(timing: CaseTiming | None, name: str) -> Kernel | None:
    return None if timing is None else Kernel(timing.candidate_ms, timing.speedup, name)


def _beside(records: Iterable[Mapping[str, CaseTiming]], shape: str) -> Kernel | None:
    """Return the baseline as timed beside other kernels: the median of its latencies, with its own interval."""
    found = sorted((cases[shape].baseline_ms for cases in records if shape in cases), key=lambda one: one.value)
    return Kernel(found[(len(found) - 1) // 2], _ITSELF, BASELINE) if found else None


def best(
    shape: str, others: Iterable[tuple[Trial, Mapping[str, CaseTiming]]], names: Mapping[tuple[str, str, int], str]
) -> Kernel | None:
    """Return the fastest published kernel on a shape, of those that are right on every case with valid timings."""
    solved = [
        kernel
        for trial, timings in others
        if outcome_of_trial(trial) is Outcome.SOLVED
        and (kernel := _kernel(timings.get(shape), names.get(trial.key, trial.agent))) is not None
    ]
    return min(solved, key=lambda one: one.latency_ms.value, default=None)


def fastest_engine(task: str, shape: str, rows: Iterable[Row]) -> Kernel | None:
    """Return the fastest engine's kernel that passed on a shape. Its record has an interval of the speedup alone."""
    found = []
    for row in rows:
        if (row["task"], row["shape"], row["status"]) == (task, shape, "passed") and row["case"] != MEAN:
            latency = float(row["candidate_ms"])
            speedup = Estimate(*(float(row[name]) for name in ("speedup", "speedup_low", "speedup_high")))
            name = f"{row['engine']} {row['version']}"
            found.append(Kernel(Estimate(latency, latency, latency), speedup, name, has_interval=False))
    return min(found, key=lambda one: one.latency_ms.value, default=None)


def sessions_differ(tasks: Iterable[Measured], engines: Iterable[Row]) -> list[float]:
    """Return by which part the baseline's latency beside an engine's kernel differs from that of the run, ascending."""
    beside = {
        (row["task"], float(row["candidate_ms"])): float(row["baseline_ms"])
        for row in engines
        if row["status"] == "passed" and row["case"] != MEAN
    }
    return sorted(
        abs(beside[one.task, one.kernels[ENGINE].latency_ms.value] / one.kernels[OURS].latency_ms.value - 1)
        for one in tasks
        if {OURS, ENGINE} <= set(one.kernels)
    )


def page(groups: Sequence[Group], device: DeviceFacts, notes: Sequence[str]) -> str:
    """Return the page as Markdown.

    Args:
        groups: tasks by corpus, in their order on the page.
        device: the device of all records.
        notes: caveats, a sentence or two each.
    """
    shown = [one for group in groups for one in group.shown]
    lines = [
        "# Speed of light",
        "",
        f"Kernels on an {device.name}, set beside a bound: the least time that any kernel needs.",
        "A share of the bound is bound over latency, on the seen case on which the baseline takes longest.",
        f"The greatest share here is {_percent(max(_shares(shown), default=0.0))}.",
        f"The figure is [speed-of-light.svg]({DRAWING.rpartition('/')[2]}).",
        "",
        "Tasks with each kernel, and the median share of the bound:",
        "",
        f"| corpus | tasks | {' | '.join(KINDS)} |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {one.name} | {len(one.tasks)} | {' | '.join(_counted(one.tasks, kind) for kind in KINDS)} |"
            for one in groups
        ),
        "",
        *_contests(shown),
        "",
        "## How to read it",
        "",
        *(f"- {note}" for note in (*_READING, *notes)),
    ]
    lines += ["", "## Recorded traffic", "", *_served(one for group in groups for one in group.tasks)]
    for group in groups:
        lines += ["", f"## {group.name}", "", *_table(group)]
        if rest := [one.task for one in group.tasks if one not in group.shown]:
            lines += ["", f"No expert and no engine's kernel holds for {len(rest)} tasks:", f"{', '.join(rest)}."]
    return "\n".join(lines) + "\n"


_READING = (
    "The bound is the longer of two times: declared bytes at the peak bandwidth, and declared operations at the peak "
    f"rate of their format. It is at least a launch, {1e3 * suites.LAUNCH_MS:.2g} µs.",
    "In brackets: the 95 % interval, from that of the latency. Records of engines have none of the latency.",
    "A kernel beats another where the intervals of their speedups do not overlap. Speedups are over the baseline "
    "timed in the same rounds, so that sessions compare.",
    "The baseline is the kernel beside the task. For `torch2hip` and `torch2triton` tasks it is PyTorch.",
    "A dash: not timed, wrong on this case, or timed with another version of the task. Where nothing holds, the case "
    "is the one with the greatest bound.",
    "Other pages take held-out cases too, so that their largest case may be another.",
)


def _counted(tasks: Iterable[Measured], kind: str) -> str:
    shares = [share.value for one in tasks if (share := one.share(kind)) is not None]
    return f"{len(shares)}, {_percent(statistics.median(shares))}" if shares else NONE


def _contests(tasks: Sequence[Measured]) -> list[str]:
    """Return how often each kind of kernel beats the engine's and the expert's, a line each."""
    lines = []
    for kind in (ENGINE, EXPERT, OURS):
        for other in KINDS:
            both = [one for one in tasks if kind in one.kernels and other in one.kernels]
            if other != kind and both:
                won = sum(other in one.beaten(kind) for one in both)
                lines.append(f"- The {other} beats the {kind} in {won} of {len(both)} tasks that have both.")
    return lines


def _table(group: Group) -> list[str]:
    head = ("task", "case", "bound, µs", "of", *KINDS, "published kernel", "beats the engine", "beats the expert")
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for one in group.shown:
        agent = one.kernels.get(AGENT)
        cells = (
            *(one.task, one.case, _microseconds(one.bound_ms), LIMITS[one.limit]),
            *(_share(one, kind) for kind in KINDS),
            agent.name if agent is not None else NONE,
            *(", ".join(one.beaten(kind)) or NONE for kind in (ENGINE, EXPERT)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _served(tasks: Iterable[Measured]) -> list[str]:
    """Return how many times less time the calls of recorded traffic take with the expert than with the baseline."""
    rows = [
        f"| {one.task} | {one.served.value:.2f}× [{one.served.low:.2f}×, {one.served.high:.2f}×] |"
        for one in tasks
        if one.served is not None
    ]
    return ["| task | [served speedup](../../docs/evaluate/measures.md#speed) of the expert |", "| --- | --- |", *rows]


def _share(one: Measured, kind: str) -> str:
    share = one.share(kind)
    if share is None:
        return NONE
    if not one.kernels[kind].has_interval:
        return _percent(share.value)
    high = "∞" if math.isinf(share.high) else f"{100 * share.high:.3g}"
    return f"{_percent(share.value)} [{100 * share.low:.3g}, {high}]"


def _shares(tasks: Iterable[Measured]) -> list[float]:
    return [share.value for one in tasks for kind in KINDS if (share := one.share(kind)) is not None]


def _microseconds(ms: float) -> str:
    return f"{1e3 * ms:.3g}" if ms < 1 else f"{1e3 * ms:,.0f}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


WIDTH, _LEFT, _RIGHT, _ROW = 860, 270, 764, 14
_TOP = 112
_MARKS = {
    ENGINE: ("diamond", "#b4531f"),
    OURS: ("ring", "#57606a"),
    EXPERT: ("disc", "#2463b4"),
    AGENT: ("square", "#6a44a8"),
}


def drawing(groups: Sequence[Group]) -> Drawing:
    """Return the figure: a row a task, a mark a kernel, over the logarithm of the share of the bound."""
    by_suite: dict[str, list[Measured]] = defaultdict(list)
    for group in groups:
        for one in group.shown:
            if one.kernels:
                by_suite[f"{group.name}: {one.suite}"].append(one)
    shares = _shares(one for tasks in by_suite.values() for one in tasks)
    lowest = math.floor(math.log10(min(shares, default=0.1)))
    highest = max(0.0, math.log10(max(shares, default=1.0)))

    def place(share: float) -> float:
        """Return where a share lies, in pixels from the left."""
        return _LEFT + (_RIGHT - _LEFT) * (math.log10(share) - lowest) / (highest - lowest)

    bottom = _TOP + _ROW * sum(len(tasks) + 2 for tasks in by_suite.values())
    out = Drawing(WIDTH, bottom + 56, "Share of the bound")
    ticks = [10.0**step for step in range(lowest, 1)]
    out.text(30, 36, "Share of the bound", size=15, bold=True)
    out.note(
        30,
        56,
        "Bound over latency, on the largest timed case of each task that an agent can see. Further right is faster.",
    )
    for number, kind in enumerate(KINDS):
        out.mark(36 + 130 * number, 74, *_MARKS[kind])
        out.note(46 + 130 * number, 78, kind)
    out.note(_RIGHT + 28, _TOP - 10, "bound of")
    for tick in ticks:
        for base in (_TOP - 10, bottom + 16):
            out.note(place(tick), base, f"{100 * tick:g} %", middle=True)
    out.note((_LEFT + _RIGHT) / 2, bottom + 38, "share of the bound, logarithmic", middle=True)
    y = float(_TOP)
    for name, tasks in by_suite.items():
        y += 2 * _ROW
        for tick in ticks:
            out.line((place(tick), y), (place(tick), y + _ROW * len(tasks)))
        out.text(30, y - 3, name, size=12, bold=True)
        for one in tasks:
            y += _ROW
            _row(out, y, one, place)
    return out


def _row(out: Drawing, y: float, one: Measured, place: Callable[[float], float]) -> None:
    found = {kind: place(share.value) for kind in KINDS if (share := one.share(kind)) is not None}
    out.text(40, y - 3, one.task.rpartition("/")[2], size=11)
    out.text(_RIGHT + 28, y - 3, LIMITS[one.limit].removeprefix("a "), size=10, ink=QUIET)
    if len(found) > 1:
        out.line((min(found.values()), y - 7), (max(found.values()), y - 7))
    for kind, x in found.items():
        out.mark(x, y - 7, *_MARKS[kind])

"""Results as tables for a terminal."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from arena.api.result import Result
from arena.processes.error_line import first_error_line
from arena.reports import formats
from arena.reports.case_frame import estimate_of, evaluation_frame
from arena.reports.formats import EMULATED
from arena.reports.groups import ALL
from arena.reports.summary import Summary
from arena.results.environment import ratio_heading
from arena.results.outcome import Outcome
from arena.results.portability import BuildOutcome, TargetBuild
from arena.results.record import Evaluation
from arena.results.verdict import Status
from arena.task.task_type import TaskType

_NUMBERS = {
    "error_ratio": ".3g",
    "baseline_ms": ".4g",
    "candidate_ms": ".4g",
    "speedup": ".3f",
    "roofline_fraction": ".0%",
}
_BUILD_COLOURS = {BuildOutcome.BUILT: "green", BuildOutcome.FAILED: "red", BuildOutcome.NOT_CHECKED: "dim"}

_DIAGNOSTIC = re.compile(
    r"\S+[:(]\d+\S*\s+(?:warning|error|note|remark)\b|\d+ warnings? generated|In file included|\S+: In "
)
_MOST_WARNINGS, _MOST_SOURCE_LINES = 8, 2
_INTERVAL, _ASIDE = re.compile(r" \[[^]]*\]"), re.compile(r", timing of one task(?=\])|one task: ")
OUTCOME_COLOURS = {
    Outcome.SOLVED: "green",
    Outcome.SEEN_ONLY: "cyan",
    Outcome.OVERFIT: "red",
    Outcome.NOT_CREDITED: "yellow",
    Outcome.FAILED: "red",
    Outcome.NOT_HANDED_IN: "dim",
    Outcome.NO_VERDICT: "magenta",
}
"""green is for what is right on every case, seen and unseen, alone"""


def summary_table(summary: Summary) -> Table:
    """One row per agent and task type: the report's table, with the intervals that rank agents alone."""
    table = Table(title="Agents", caption="\n".join(summary.notes), caption_justify="left")
    for place, heading in enumerate(summary.rows[0].cells if summary.rows else ()):
        table.add_column(heading, justify="left" if place < 2 else "right", no_wrap=place in (0, 2, 5))
    for row in summary.rows:
        texts = [_short(heading, text) for heading, text in row.cells.items()]
        table.add_row(*map(escape, texts), style="bold" if row.task_type == ALL else "")
    return table


def _short(heading: str, text: str) -> str:
    """Return a cell for a terminal: its interval is left out but behind the gain, and so are words in the brackets."""
    if heading.startswith("Gain"):
        return _ASIDE.sub("", text)
    return _INTERVAL.sub("", text)


def answer_lines(summary: Summary) -> list[str]:
    """The three answers of the report, a line each."""
    answers = ((one.question, escape(one.lead.rstrip(".")), escape(one.rest)) for one in summary.answers)
    return [f"[bold]{question}[/bold] {lead}. [dim]{rest}[/dim]" for question, lead, rest in answers]


def failures_table(summary: Summary) -> Table | None:
    """One row per trial that is not solved; None where all are."""
    if not summary.failures:
        return None
    table = Table(title="Trials that are not solved")
    for heading in ("agent", "task", "outcome", "detail"):
        table.add_column(heading, overflow="fold")
    for failure in summary.failures:
        detail = escape(first_error_line(failure.detail))
        table.add_row(escape(failure.agent), failure.task, outcome_text(failure.outcome), detail)
    return table


def outcome_text(outcome: Outcome, width: int = 0) -> str:
    """Return an outcome in its colour: green where solved, red where wrong, else dim."""
    return f"[{OUTCOME_COLOURS[outcome]}]{outcome:<{width}}[/{OUTCOME_COLOURS[outcome]}]"


def evaluation_table(result: Result) -> Table:
    """One row per case, and below them what its signs mean."""
    evaluation = result.evaluation
    emulated = evaluation.environment.device.emulated
    notes = [f"Latencies are {EMULATED}."] if emulated else []
    if any(case.speedup is not None and case.timing is not None and case.timing.noisy for case in evaluation.cases):
        notes.append("~: a noisy case, whose 95 % interval stayed wide.")
    table = Table(title=result.title, caption="\n".join(notes) or None)
    for heading in ("case", "kind", "sizes", "status"):
        table.add_column(heading, overflow="fold")
    ratio = ratio_heading(emulated)
    for heading in ("error / tolerance", "baseline ms", "candidate ms", ratio, "roofline"):
        table.add_column(heading, justify="right")
    for cells in evaluation_frame(evaluation).to_dict("records"):
        status = Status(cells["candidate"])
        table.add_row(cells["case"], cells["kind"], cells["shape"], _status(status), *_numbers(cells))
    return table


def compiler_warnings(evaluation: Evaluation) -> list[str]:
    """Return what the compiler warned of in the candidate's own file: each warning once, with the lines behind it."""
    name = TaskType(evaluation.task_type).kernel_file
    own = re.compile(rf"(?:\S*/)?{re.escape(name)}[:(](?P<line>\d+)\S*\s+warning\b.*")
    blocks: dict[str, list[str]] = {}
    block: list[str] = []
    for line in evaluation.compile_log.splitlines():
        if own.match(line):
            block = [] if line in blocks else blocks.setdefault(line, [])
        elif _DIAGNOSTIC.match(line):
            block = []
        elif line.strip() and len(block) < _MOST_SOURCE_LINES:
            block.append(line)
    shown = [line for first, more in list(blocks.items())[:_MOST_WARNINGS] for line in (first, *more)]
    left = len(blocks) - _MOST_WARNINGS
    return shown + ([f"… {left} more warnings"] if left > 0 else [])


def targets_table(evaluation: Evaluation) -> Table:
    """One row per GPU that the candidate was built for, with what its kernel of most registers takes."""
    table = Table(title="Builds for other GPUs", caption="Compiled for these, not run on them.")
    executed = any(build.machine_code is not None for build in evaluation.targets)
    for heading in ("target", "outcome", *(["machine code"] if executed else [])):
        table.add_column(heading)
    for heading in ("seconds", "kernels", "registers", "LDS / shared", "spills", "occupancy"):
        table.add_column(heading, justify="right")
    table.add_column("detail", overflow="fold")
    for build in evaluation.targets:
        colour = _BUILD_COLOURS[build.outcome]
        outcome = f"[{colour}]{str(build.outcome).replace('_', ' ')}[/{colour}]"
        found = build.machine_code
        detail = escape(first_error_line(build.detail or (found.detail if found else "")))
        ran = [str(found.outcome).replace("_", " ") if found else formats.NONE] if executed else []
        table.add_row(build.target, outcome, *ran, f"{build.seconds:.1f}", *_use(build), detail)
    return table


def _use(build: TargetBuild) -> tuple[str, str, str, str, str]:
    if not build.kernels:
        return formats.NONE, formats.NONE, formats.NONE, formats.NONE, formats.NONE
    most = max(build.kernels, key=lambda use: use.registers)
    spills = f"[red]{formats.size(most.spill_bytes)}[/red]" if most.spill_bytes else "0 B"
    shared, occupancy = formats.size(most.shared_bytes), formats.percent(most.occupancy)
    return str(len(build.kernels)), str(most.registers), shared, spills, occupancy


def _numbers(cells: Mapping[Hashable, Any]) -> list[str]:
    """Error over tolerance, both latencies, speedup and roofline fraction as text."""
    row = {str(name): None if cell != cell else cell for name, cell in cells.items()}  # NaN: no value
    texts = {name: formats.NONE if row[name] is None else f"{row[name]:{spec}}" for name, spec in _NUMBERS.items()}
    speedup = estimate_of(row, "speedup")
    if speedup is not None:
        texts["speedup"] += f" [{speedup.low:.3f}, {speedup.high:.3f}]{' ~' if row['noisy'] else ''}"
    return list(texts.values())


def _status(status: Status) -> str:
    colour = {Status.PASSED: "green", Status.NOT_RUN: "dim"}.get(status, "red")
    return f"[{colour}]{status}[/{colour}]"

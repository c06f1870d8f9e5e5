"""Results as tables for a terminal."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from arena.api.result import Result
from arena.error_line import first_error_line
from arena.model.environment import ratio_heading
from arena.model.portability import BuildOutcome, TargetBuild
from arena.model.record import Evaluation
from arena.model.verdict import Status
from arena.reporting import formats
from arena.reporting.case_frame import estimate_of, evaluation_frame
from arena.reporting.formats import EMULATED
from arena.reporting.intervals import Method, Quantity
from arena.reporting.summary import Summary

_NUMBERS = {
    "error_ratio": ".3g",
    "baseline_ms": ".4g",
    "candidate_ms": ".4g",
    "speedup": ".3f",
    "roofline_fraction": ".0%",
}
_OUTCOME_COLOURS = {BuildOutcome.BUILT: "green", BuildOutcome.FAILED: "red", BuildOutcome.NOT_CHECKED: "dim"}


def summary_table(summary: Summary) -> Table:
    """One row per agent and task type."""
    notes = [f"Ratios are of {EMULATED}."] if summary.emulated else []
    ratios = [ratio for row in summary.rows for ratio in (row.mean_speedup, row.geomean_speedup) if ratio]
    if any(ratio.method is Method.TIMING for ratio in ratios):
        notes.append("* one task: the interval of its timing.")
    table = Table(title="Agents", caption="\n".join(notes) or None)
    for heading in ("agent", "task type"):
        table.add_column(heading)
    ratio = f"mean {ratio_heading(summary.emulated)}"
    for heading in ("trials", "not\nhanded in", "compiled", "seen", "held-out", "drop", ratio, "geo-mean"):
        table.add_column(heading, justify="right")
    for row in summary.rows:
        table.add_row(
            escape(row.agent),
            row.task_type,
            str(row.trials),
            str(row.not_handed_in),
            formats.ratio_of(row.compiled, row.handed_in),
            formats.ratio_of(row.correct_seen, row.handed_in),
            "–" if row.correct_heldout is None else formats.ratio_of(row.correct_heldout, row.handed_in),
            _drop(row.drop),
            _ratio(row.mean_speedup),
            _ratio(row.geomean_speedup),
            style="bold" if row.task_type == "all" else "",
        )
    return table


def failures_table(summary: Summary) -> Table | None:
    """One row per candidate that did not pass; None where all did."""
    failed = [failure for failure in summary.failures if failure.status != Status.NOTHING_SUBMITTED]
    if not failed:
        return None
    table = Table(title="Candidates that did not pass")
    for heading in ("agent", "task", "status", "detail"):
        table.add_column(heading, overflow="fold")
    for failure in failed:
        table.add_row(escape(failure.agent), failure.task, failure.status, escape(first_error_line(failure.detail)))
    return table


def evaluation_table(result: Result) -> Table:
    """One row per case, and below them what its signs mean."""
    evaluation = result.evaluation
    emulated = evaluation.environment.device.emulated
    notes = [f"Latencies are {EMULATED}."] if emulated else []
    if any(case.speedup is not None and case.timing is not None and case.timing.noisy for case in evaluation.cases):
        notes.append("~: a noisy case, whose 95 % interval stayed wide.")
    table = Table(title=result.outcome, caption="\n".join(notes) or None)
    for heading in ("case", "kind", "sizes", "status"):
        table.add_column(heading, overflow="fold")
    ratio = ratio_heading(emulated)
    for heading in ("error / tolerance", "baseline ms", "candidate ms", ratio, "roofline"):
        table.add_column(heading, justify="right")
    for cells in evaluation_frame(evaluation).to_dict("records"):
        status = Status(cells["candidate"])
        table.add_row(cells["case"], cells["kind"], cells["shape"], _status(status), *_numbers(cells))
    return table


def failing_cases(evaluation: Evaluation) -> Iterable[str]:
    """What went wrong, case by case; what several cases say alike is said once."""
    told: dict[str, list[str]] = {}
    for result in evaluation.cases:
        if result.detail:
            told.setdefault(result.detail.strip(), []).append(f"{result.case} ({result.label})")
    for detail, cases in told.items():
        yield f"{', '.join(cases)}:" + ("\n" if "\n" in detail else " ") + detail


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
        colour = _OUTCOME_COLOURS[build.outcome]
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


def _ratio(quantity: Quantity | None) -> str:
    return "–" if quantity is None else _with_interval(quantity, "{:.2f}×", "{:.2f}")


def _drop(quantity: Quantity | None) -> str:
    """The share with the number of trials that it is taken over, or a dash where there are none."""
    return "–" if quantity is None else f"{_with_interval(quantity, '{:.0%}', '{:.0%}')} of {quantity.count:g}"


def _with_interval(quantity: Quantity, value: str, bound: str) -> str:
    text = value.format(quantity.value)
    if quantity.low is None or quantity.high is None:
        return text
    mark = "*" if quantity.method is Method.TIMING else ""
    return f"{text} [{bound.format(quantity.low)}, {bound.format(quantity.high)}]{mark}"

"""`arena report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.cli.console import err, examples, out, print_json

if TYPE_CHECKING:
    from arena.reports.summary import Summary
    from arena.runs.records import RunRecords

EXAMPLES = examples(
    "arena report runs/quickstart",
    "arena report runs/monday runs/tuesday --out reports/both",
)


def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.", exists=True, file_okay=False)],
    out_dir: Annotated[Path | None, typer.Option("--out", help="Output folder; default: reports/<run>.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Write the report of one or more runs: index.html, summary.md, CSV, JSON and figures. Needs no GPU, no torch."""
    from arena.runs.submission import read_folder

    read = [read_folder(path) for path in runs]
    target = out_dir or Path("reports") / "+".join(run.info.run for run in read)
    write_and_show(read, target, as_json=as_json)


def write_and_show(runs: Sequence[RunRecords], target: Path, *, write: bool = True, as_json: bool = False) -> None:
    """Print the tables of runs, write their report and say where it is; or print the summaries as JSON."""
    from arena.reports.summary import summary_table

    per_device = _per_device(runs)
    summaries = [summary_table(run) for group in per_device for run in group]
    if as_json:
        print_json(summaries)
    else:
        _show(summaries)
    if not write:
        return
    from rich.markup import escape

    from arena.reports.pages import write_report

    for group in per_device:
        device = group[0].info.environment.device
        written = write_report(group, target if len(per_device) == 1 else target / f"{device.platform}-{device.arch}")
        if not as_json:
            for warning in written.warnings:
                text = escape(f"{warning.problem}; {warning.next_step}")
                err.print(f"[yellow]warning[/yellow]: {text}", highlight=False)
            out.print(f"report: {written.index}", highlight=False)


def _per_device(runs: Sequence[RunRecords]) -> list[list[RunRecords]]:
    """The runs in one group; where one is of several devices, a group for each device, and a report for each."""
    from arena.runs.records import by_device

    if not any(run.info.devices for run in runs):
        return [list(runs)]
    groups: list[list[RunRecords]] = []
    for part in (part for run in runs for part in by_device(run)):
        same = [group for group in groups if group[0].info.environment.comparable_with(part.info.environment)]
        if same:
            same[0].append(part)
        else:
            groups.append([part])
    return groups


def _show(summaries: Sequence[Summary]) -> None:
    from arena.cli import render

    for summary in summaries:
        failures = render.failures_table(summary)
        if failures is not None:
            out.print(failures)
        out.print(render.summary_table(summary))
        for line in render.answer_lines(summary):
            out.print(line, highlight=False)

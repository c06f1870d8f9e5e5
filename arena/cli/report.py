"""`arena report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.cli.console import err, examples, out, print_json

if TYPE_CHECKING:
    from arena.reporting.summary import Summary
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
    from arena.runs.records import read_run

    read = [read_run(path) for path in runs]
    target = out_dir or Path("reports") / "+".join(run.info.run for run in read)
    write_and_show(read, target, as_json=as_json)


def write_and_show(runs: Sequence[RunRecords], target: Path, *, write: bool = True, as_json: bool = False) -> None:
    """Print the tables of runs, write their report and say where it is; or print the summaries as JSON."""
    from arena.reporting.summary import summary_table

    summaries = [summary_table(run) for run in runs]
    if as_json:
        print_json(summaries)
    else:
        _show(summaries)
    if not write:
        return
    from arena.reporting.pages import write_report

    written = write_report(runs, target)
    if not as_json:
        for warning in written.warnings:
            err.print(f"[yellow]warning[/yellow]: {warning.problem}; {warning.next_step}", highlight=False)
        out.print(f"report: {written.index}", highlight=False)


def _show(summaries: Sequence[Summary]) -> None:
    from arena.cli import render

    for summary in summaries:
        failures = render.failures_table(summary)
        if failures is not None:
            out.print(failures)
        out.print(render.summary_table(summary))

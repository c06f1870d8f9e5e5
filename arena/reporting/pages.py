"""The report: one self-contained page, and beside it the same numbers as markdown, CSV, JSON and PNG."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from arena.errors import UsageError
from arena.printable import printable
from arena.reporting import formats, tables, views
from arena.reporting.case_frame import HeldoutOutcome
from arena.reporting.figures import DARK
from arena.reporting.groups import ALL, Group, groups
from arena.reporting.plots import PLOTS, render
from arena.reporting.report_warnings import ReportWarning, warnings
from arena.reporting.rows import TrialRow, trial_rows
from arena.reporting.session_views import HEADINGS, sessions_frame, sessions_markdown, sessions_views
from arena.reporting.target_tables import targets_frame, targets_markdown
from arena.reporting.target_views import TargetsView, targets_view
from arena.reporting.templating import html_engine
from arena.reporting.transcript_page import write_pages
from arena.runs.records import RunRecords


@dataclass(frozen=True)
class Report:
    """What was written: the page, every file beside it, and the measures and warnings that it states."""

    index: Path
    files: tuple[Path, ...]
    title: str
    groups: tuple[Group, ...]
    warnings: tuple[ReportWarning, ...]


@dataclass(frozen=True)
class PlotView:
    """A drawn plot as data URIs for light and dark pages."""

    name: str
    title: str
    caption: str
    timed: bool
    light: str
    dark: str


def write_report(runs: Sequence[RunRecords], out: Path) -> Report:
    """Write the report of one or more runs into the folder `out`, which is made where it does not exist.

    Several runs must have been measured on the same kind of device, else `RecordError`. An agent that occurs in
    two of them is labelled `agent (run)`.
    """
    if not runs:
        raise UsageError("a report needs at least one run: `arena report RUN`")
    rows, files = write_pages(runs, trial_rows(runs), out)
    measured, found = groups(rows), warnings(runs, rows)
    emulated = runs[0].info.environment.device.emulated
    title = ", ".join(run.info.run for run in runs)
    (out / "plots").mkdir(parents=True, exist_ok=True)
    plots, drawn = _plots(measured, emulated, out / "plots")
    files += drawn + _data_files(runs, rows, measured, found, out)
    targets = targets_view(rows, measured)
    files += _optional_file(targets_frame(rows), out / "targets.csv")
    files += _optional_file(sessions_frame(rows), out / "sessions.csv")
    files.append(_write(out / "summary.md", _summary(title, runs, rows, measured, found, targets)))
    index = _write(out / "index.html", _page(title, runs, rows, measured, found, plots, targets))
    return Report(index, tuple(files), title, tuple(measured), tuple(found))


def _data_files(
    runs: Sequence[RunRecords],
    rows: Sequence[TrialRow],
    measured: Sequence[Group],
    found: Sequence[ReportWarning],
    out: Path,
) -> list[Path]:
    emulated = runs[0].info.environment.device.emulated
    return [
        tables.write_csv(tables.trials_frame(rows), out / "trials.csv"),
        tables.write_csv(tables.cases_frame(rows), out / "cases.csv"),
        tables.write_csv(tables.measures_frame(measured, emulated), out / "measures.csv"),
        _write(out / "report.json", tables.report_json(runs, measured, found, rows)),
    ]


def _optional_file(frame: pd.DataFrame, path: Path) -> list[Path]:
    """Builds for other GPUs, or sessions; where there are none, no file, also not that of an earlier report."""
    if frame.empty:
        path.unlink(missing_ok=True)
        return []
    return [tables.write_csv(frame, path)]


def _plots(measured: Sequence[Group], emulated: bool, folder: Path) -> tuple[list[PlotView], list[Path]]:
    drawn, files = [], []
    for plot in PLOTS:
        light = render(plot, measured, emulated=emulated)
        dark = render(plot, measured, emulated=emulated, palette=DARK)
        path = folder / f"{plot.name}.png"
        if light is None or dark is None:
            path.unlink(missing_ok=True)
            continue
        path.write_bytes(light)
        files.append(path)
        drawn.append(PlotView(plot.name, plot.title, plot.caption, plot.timed, _data_uri(light), _data_uri(dark)))
    return drawn, files


def _summary(
    title: str,
    runs: Sequence[RunRecords],
    rows: Sequence[TrialRow],
    measured: Sequence[Group],
    found: Sequence[ReportWarning],
    targets: TargetsView | None,
) -> str:
    lines = [f"# {title}", ""]
    for run in runs:
        environment = run.info.environment
        versions = ", ".join(f"{name} {version}" for name, version in sorted(environment.versions.items()))
        where = f"{formats.device_line(environment)}; isolation {environment.isolation}; {versions}"
        lines.append(f"- {run.info.run}: {where}; {len(run.trials)} of {len(run.info.planned)} trials recorded")
    if runs[0].info.environment.device.emulated:
        lines += ["", f"**Speedups below are ratios of {formats.EMULATED}.**"]
    lines += ["", tables.markdown(tables.summary_frame(measured)) if measured else "No trials were planned.\n"]
    lines.append("Values with 95 % intervals; means over attempts. Formulas: docs/evaluate/measures.md.")
    if targets is not None:
        lines += ["", *targets_markdown(targets)]
    lines += sessions_markdown(rows)
    if found:
        lines += ["", "## Warnings", ""]
        lines += [f"- {warning.problem}. Next: {warning.next_step}" for warning in found]
    return "\n".join(lines) + "\n"


def _page(
    title: str,
    runs: Sequence[RunRecords],
    rows: Sequence[TrialRow],
    measured: Sequence[Group],
    found: Sequence[ReportWarning],
    plots: Sequence[PlotView],
    targets: TargetsView | None,
) -> str:
    summary = tables.summary_frame(measured)
    overall = [group for group in measured if group.task_type == ALL]
    return (
        html_engine()
        .get_template("report.html.j2")
        .render(
            title=title,
            runs=[views.run_view(run) for run in runs],
            emulated=formats.EMULATED if runs[0].info.environment.device.emulated else "",
            warnings=found,
            columns=list(summary.columns),
            summary=summary.to_numpy().tolist(),
            plots=plots,
            outcomes=[(outcome, views.outcome_name(outcome)) for outcome in HeldoutOutcome],
            overall=overall,
            kinds=views.kind_lines(overall),
            groups=measured,
            measures=views.measure_views(measured, best=False),
            best=views.measure_views(measured, best=True) if any(run.info.attempts > 1 for run in runs) else [],
            types=views.type_views(rows),
            sessions=sessions_views(rows),
            session_headings=HEADINGS,
            targets=targets,
        )
    )


def _data_uri(image: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(image).decode("ascii")


def _write(path: Path, text: str) -> Path:
    path.write_text(printable(text), encoding="utf-8")
    return path

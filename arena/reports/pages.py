"""The report: a page with a page per task, and beside them the same numbers as Markdown, CSV, JSON and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from arena.errors import UsageError
from arena.processes.printable import write_printable
from arena.reports import formats, tables, views
from arena.reports.answers import answers
from arena.reports.groups import ALL, Group, groups
from arena.reports.plain import markdown_line
from arena.reports.plots import PLOTS
from arena.reports.png import png
from arena.reports.report_warnings import ReportWarning, warnings
from arena.reports.results import notes, results_frame
from arena.reports.rows import TrialRow, trial_rows
from arena.reports.session_views import HEADINGS, sessions_frame, sessions_markdown, sessions_views
from arena.reports.standings import RankedGroup, standings
from arena.reports.target_tables import targets_frame, targets_markdown
from arena.reports.target_views import TargetsView, targets_view
from arena.reports.task_pages import write_task_pages
from arena.reports.templating import asset, html_engine
from arena.reports.transcript_page import write_pages
from arena.results.environment import ratio_heading
from arena.results.outcome import HeldoutOutcome
from arena.runs.records import RunRecords

MOST_ITEMS = 200
"""Trials or cases that the page names under one warning; report.json names all."""


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
    """A drawn figure with its words."""

    name: str
    title: str
    caption: str
    timed: bool
    svg: str


@dataclass(frozen=True)
class FrameView:
    """A table of text."""

    columns: list[str]
    rows: list[list[str]]


def write_report(runs: Sequence[RunRecords], out: Path) -> Report:
    """Write the report of one or more runs into the folder `out`, which is made where it does not exist.

    Several runs must have been measured on the same kind of device, else `RecordError`. An agent that occurs in
    two of them is labelled `agent (run)`.
    """
    if not runs:
        raise UsageError("a report needs at least one run: `arena report RUN`")
    out.mkdir(parents=True, exist_ok=True)
    rows, files = write_pages(runs, trial_rows(runs), out)
    ordered, found = standings(rows, groups(rows)), warnings(runs, rows)
    measured = [one.group for one in ordered]
    title = ", ".join(run.info.run for run in runs)
    files += write_task_pages(runs, rows, title, out)
    plots, drawn = _plots(measured, runs[0].info.environment.device.emulated, out / "plots")
    files += drawn + _data_files(runs, rows, ordered, found, out)
    targets = targets_view(rows, measured)
    files.append(write_printable(out / "summary.md", _summary(title, runs, rows, ordered, found, targets)))
    names = sorted(path.name for path in files if path.suffix in (".csv", ".md"))
    index = write_printable(out / "index.html", _page(title, runs, rows, ordered, found, plots, targets, names))
    return Report(index, tuple(files), title, tuple(measured), tuple(found))


def _data_files(
    runs: Sequence[RunRecords],
    rows: Sequence[TrialRow],
    ordered: Sequence[RankedGroup],
    found: Sequence[ReportWarning],
    out: Path,
) -> list[Path]:
    emulated = runs[0].info.environment.device.emulated
    return [
        tables.write_csv(tables.trials_frame(rows), out / "trials.csv"),
        tables.write_csv(tables.cases_frame(rows), out / "cases.csv"),
        tables.write_csv(tables.measures_frame([one.group for one in ordered], emulated), out / "measures.csv"),
        write_printable(out / "report.json", tables.report_json(runs, ordered, found, rows)),
        *_optional_file(targets_frame(rows), out / "targets.csv"),
        *_optional_file(sessions_frame(rows), out / "sessions.csv"),
    ]


def _optional_file(frame: pd.DataFrame, path: Path) -> list[Path]:
    """Builds for other GPUs, or sessions; where there are none, no file, also not that of an earlier report."""
    if frame.empty:
        path.unlink(missing_ok=True)
        return []
    return [tables.write_csv(frame, path)]


def _plots(measured: Sequence[Group], emulated: bool, folder: Path) -> tuple[list[PlotView], list[Path]]:
    folder.mkdir(exist_ok=True)
    for stale in (folder / f"{plot.name}.{kind}" for plot in PLOTS for kind in ("svg", "png")):
        stale.unlink(missing_ok=True)
    drawn, files = [], []
    for plot in PLOTS:
        chart = plot.draw(measured, emulated)
        if chart is not None:
            files.append(write_printable(folder / f"{plot.name}.svg", chart.svg(asset("figure.css"))))
            image = folder / f"{plot.name}.png"
            image.write_bytes(png(chart))
            files.append(image)
            title = plot.title.replace("Speedup", ratio_heading(emulated).capitalize())
            drawn.append(PlotView(plot.name, title, plot.caption, plot.timed, chart.svg()))
    return drawn, files


def _summary(
    title: str,
    runs: Sequence[RunRecords],
    rows: Sequence[TrialRow],
    ordered: Sequence[RankedGroup],
    found: Sequence[ReportWarning],
    targets: TargetsView | None,
) -> str:
    lines = [f"# {title}", ""]
    for run in runs:
        environment = run.info.environment
        versions = ", ".join(f"{name} {version}" for name, version in sorted(environment.versions.items()))
        where = f"{formats.device_line(environment)}; isolation {environment.isolation}; {versions}"
        recorded = f"{len(run.trials)} of {len(run.info.planned)} trials recorded"
        lines.append(f"- {markdown_line(f'{run.info.run}: {where}; {recorded}')}")
    emulated = runs[0].info.environment.device.emulated
    if emulated:
        lines += ["", f"**Speedups below are ratios of {formats.EMULATED}.**"]
    found_answers = answers(ordered, emulated)
    lines += [markdown_line(f"**{one.question}** {one.lead.removesuffix('.')}. {one.rest}") for one in found_answers]
    results = results_frame(ordered, emulated)
    lines += ["", tables.markdown(results) if ordered else "No trials were planned.\n"]
    lines += [tables.markdown(tables.statuses_frame([one.group for one in ordered]))] if ordered else []
    lines += [*notes(ordered, emulated), "Formulas: docs/evaluate/measures.md."]
    if targets is not None:
        lines += ["", *targets_markdown(targets)]
    lines += sessions_markdown(rows)
    if found:
        lines += ["", "## Warnings", ""]
        lines += [f"- {markdown_line(f'{warning.problem}. Next: {warning.next_step}')}" for warning in found]
    return "\n".join(lines) + "\n"


def _page(
    title: str,
    runs: Sequence[RunRecords],
    rows: Sequence[TrialRow],
    ordered: Sequence[RankedGroup],
    found: Sequence[ReportWarning],
    plots: Sequence[PlotView],
    targets: TargetsView | None,
    files: Sequence[str],
) -> str:
    emulated = runs[0].info.environment.device.emulated
    measured = [one.group for one in ordered]
    overall = [group for group in measured if group.task_type == ALL]
    labels = [group.label for group in overall]
    tasks = views.task_lines(rows, labels)
    return (
        html_engine()
        .get_template("report.html.j2")
        .render(
            title=title,
            facts=views.facts_line(runs),
            answers=answers(ordered, emulated),
            runs=[views.run_view(run) for run in runs],
            emulated=formats.EMULATED if emulated else "",
            warnings=found,
            most_items=MOST_ITEMS,
            results=_frame(results_frame(ordered, emulated)),
            notes=notes(ordered, emulated),
            task_types=list(dict.fromkeys(group.task_type for group in measured)),
            plots=plots,
            labels=labels,
            tasks=tasks,
            suite_names=list(dict.fromkeys(task.suite for task in tasks)),
            suites=_frame(tables.suites_frame(rows, emulated)),
            kinds=_frame(tables.kinds_frame(overall)),
            outcomes=[(outcome, views.outcome_name(outcome)) for outcome in HeldoutOutcome],
            overall=overall,
            statuses=_frame(tables.statuses_frame(measured)),
            groups=measured,
            measures=views.measure_views(measured, best=False),
            best=views.measure_views(measured, best=True) if any(run.info.attempts > 1 for run in runs) else [],
            sessions=sessions_views(rows),
            session_headings=HEADINGS,
            targets=targets,
            files=files,
        )
    )


def _frame(frame: pd.DataFrame) -> FrameView:
    return FrameView(list(frame.columns), frame.to_numpy().tolist())

"""One trial of a coding agent as a self-contained page: what it did, in order, and what came of it.

All of it is untrusted: every text is made plain and escaped, and the page forbids itself to load or run anything but
its own style, plots and one button (Content-Security-Policy).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from arena.processes.printable import write_printable
from arena.reports import formats, views
from arena.reports.case_frame import case_cells
from arena.reports.plain import plain
from arena.reports.plots import CURVE_CAPTION, session_curve
from arena.reports.rows import TrialRow
from arena.reports.session_views import session_facts, spelled
from arena.reports.templating import html_engine
from arena.reports.transcript_views import evaluation_views, event_views, shown_events
from arena.results.outcome import ending as trial_ending
from arena.results.session import Ending, Flag
from arena.results.transcripts import EVENTS, FOLDER, Transcript, read_transcript, transcript_path
from arena.runs.records import RunRecords

MOST_BYTES = 10_000_000
"""A page that would be larger shows less of every text."""
LIMITS = (20_000, 8_000, 3_000, 1_200, 500, 200)
"""Characters that are shown of one text, tried in this order."""


@dataclass(frozen=True)
class FlagView:
    """One flag; `index` is its event, `shown` whether that is on the page."""

    index: int
    reaches_for: str
    excerpt: str
    shown: bool


def transcript_page(row: TrialRow, transcript: Transcript, back: str = "") -> str:
    """The page of one trial; `back` is the address of the report that it belongs to.

    `row.status` is None where the trial has no record yet.
    """
    page = ""
    for limit in LIMITS:
        if limit != LIMITS[-1] and _least_bytes(transcript, limit) > MOST_BYTES:
            continue
        page = _render(row, transcript, back, limit)
        if len(page.encode("utf-8")) <= MOST_BYTES:
            break
    return page


def page_path(row: TrialRow) -> Path:
    """Where the page of a trial lies in a report's folder."""
    place = transcript_path(Path(row.run), row.agent, row.task, row.attempt)
    return Path(FOLDER, row.run, row.agent, f"{place.name}.html")


def write_pages(runs: Sequence[RunRecords], rows: Sequence[TrialRow], out: Path) -> tuple[list[TrialRow], list[Path]]:
    """Write the page of every trial that has a transcript below `out`; those of an earlier report go.

    Returns the rows, with links to their pages, and the files.
    """
    for stale in (out / FOLDER).glob("*/*/*.html"):
        stale.unlink()
    folders = {run.info.run: run.path for run in runs}
    linked, files = [], []
    for row in rows:
        folder = transcript_path(folders[row.run], row.agent, row.task, row.attempt)
        if not (folder / EVENTS).is_file():
            linked.append(row)
            continue
        page = transcript_page(row, read_transcript(folder), back="../../../index.html#tasks")
        linked.append(replace(row, page=quote(page_path(row).as_posix())))
        files.append(write_printable(out / page_path(row), page))
    return linked, files


def _render(row: TrialRow, transcript: Transcript, back: str, limit: int) -> str:
    session = row.session
    flags = session.flags if session else ()
    evaluated = session.evaluations if session else tuple(kept.evaluated for kept in transcript.evaluations)
    template = html_engine().get_template("transcript.html.j2")
    return template.render(
        row=row,
        title=f"{row.agent} on {row.task}",
        back=back,
        outcome=trial_ending(row.outcome, row.status),
        tone=views.tone(row),
        ending=spelled(session.ending) if session else "",
        ending_tone="good" if session and session.ending is Ending.FINISHED else "bad",
        facts=_facts(row),
        flags=_flag_views(flags, len(transcript.events)),
        curve=_curve(row, transcript),
        caption=CURVE_CAPTION,
        emulated=formats.EMULATED if row.emulated else "",
        events=event_views(transcript, flags, limit),
        total=len(transcript.events),
        evaluations=evaluation_views(transcript, limit),
        refused=session.refused if session else 0,
        used=len(evaluated),
        speedup=formats.speedup(row.speedup),
        heldout_speedup=formats.speedup(row.heldout_speedup),
        detail=plain(row.detail),
        cases=[views.case_view(case_cells(case.result, case.outcome)) for case in row.cases],
        limit=limit,
    )


def _least_bytes(transcript: Transcript, limit: int) -> int:
    """What the texts alone take on a page, before anything is escaped; spares drawing a page that is too large."""
    indices = shown_events(len(transcript.events), {})
    shown = (transcript.events[index] for index in indices)
    return sum(min(limit, len(event.text)) + min(limit, len(event.diff)) for event in shown)


def _facts(row: TrialRow) -> list[tuple[str, str]]:
    session = row.session
    facts = [("run", row.run), ("agent", row.agent), ("task", row.task), ("attempt", str(row.attempt))]
    found = session_facts(session) if session else [("session", "not recorded: the trial did not end, or not yet")]
    measured = [("measured on", row.arch)] if row.arch else []
    return [*facts, *((name, plain(value)) for name, value in found), *measured]


def _flag_views(flags: Sequence[Flag], count: int) -> list[FlagView]:
    there = set(shown_events(count, {flag.event: None for flag in flags}))
    return [FlagView(flag.event, flag.reaches_for, plain(flag.excerpt), flag.event in there) for flag in flags]


def _curve(row: TrialRow, transcript: Transcript) -> str:
    chart = session_curve([kept.evaluated for kept in transcript.evaluations], emulated=row.emulated)
    return chart.svg() if chart else ""

"""Write a leaderboard: static pages over many runs, which anybody may have handed in.

Every text is made plain and escaped, every file name is derived from a hash, and the pages forbid themselves to load
anything (Content-Security-Policy in `base.html.j2`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from arena.errors import UsageError
from arena.processes.printable import write_printable
from arena.reports import site_texts, tables
from arena.reports.groups import ALL
from arena.reports.pages import write_report
from arena.reports.site_entries import BoardEntry, out_of_range, slug
from arena.reports.site_tables import (
    Cell,
    SiteTable,
    best_known,
    best_table,
    board,
    board_texts,
    board_title,
    boards,
    name,
    span,
    step_line,
    task_types,
)
from arena.reports.templating import html_engine
from arena.results.environment import ratio_heading
from arena.runs.records import RunRecords
from arena.version import version

MARK = ".arena-site"
FOLDERS = ("runs", "agents", "tasks")


@dataclass(frozen=True)
class PageSection:
    """Part of a page: paragraphs, then a plot, then a table, each where there is one."""

    heading: str = ""
    texts: tuple[str, ...] = ()
    table: SiteTable | None = None
    points: str = ""
    caption: str = ""
    range: str = ""
    """what the plot's axes span"""


def write_site(
    entries: Sequence[BoardEntry], out: Path, write_run: Callable[[Sequence[RunRecords], Path], object] = write_report
) -> Path:
    """Write the site of some runs into a folder, in place of an earlier site there.

    Args:
        entries: the runs.
        out: the folder.
        write_run: writes the pages of one run.

    Returns:
        The path of `index.html`.

    Raises:
        UsageError: the folder holds something else, or there is no run.
        RecordError: a record holds a number that no measurement has.
    """
    if not entries:
        raise UsageError("a site needs at least one run: `arena site RUN… --out DIR`")
    _clear(out)
    for entry in entries:
        try:
            write_run([entry.run], out / "runs" / slug(entry.name))
        except (ValueError, ArithmeticError) as problem:
            raise out_of_range(entry.run.path, problem) from None
    index = _write(out / "index.html", "Leaderboard", _index(entries))
    for agent in dict.fromkeys(row.agent for entry in entries for row in entry.rows):
        _write(out / "agents" / f"{slug(agent)}.html", f"Agent {name(agent)}", _agent(entries, agent), "../")
    for task in dict.fromkeys(row.task for entry in entries for row in entry.rows):
        _write(out / "tasks" / f"{slug(task)}.html", f"Task {name(task)}", _task(entries, task), "../")
    _write(out / "method.html", "Method", [PageSection(*part) for part in site_texts.METHOD])
    _write(out / "submit.html", "Submit a run", [PageSection(*part) for part in site_texts.SUBMIT])
    tables.write_csv(_boards_frame(entries), out / "boards.csv")
    return index


def _clear(out: Path) -> None:
    """Remove an earlier site, and nothing else."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"--out {out}: not a folder; give one that does not exist yet")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise UsageError(f"--out {out}: holds something else than a site; give an empty folder")
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).write_text("written by `arena site`, which replaces what is here\n", encoding="utf-8")
    for folder in FOLDERS:
        if (out / folder).is_dir() and not (out / folder).is_symlink():
            shutil.rmtree(out / folder)


def _index(entries: Sequence[BoardEntry]) -> Iterable[PageSection]:
    yield PageSection(texts=site_texts.INDEX)
    for found in boards(entries).values():
        title = board_title(found[0])
        for task_type in task_types(found):
            heading = f"{title}: {'all task types' if task_type == ALL else name(task_type)}"
            yield PageSection(heading, board_texts(found) if task_type == ALL else (), board(found, task_type))
    notes = tuple(f"{name(entry.name)}: {note}" for entry in entries for note in entry.notes)
    if notes:
        yield PageSection("Notes", notes)
    tasks = sorted({row.task for entry in entries for row in entry.rows})
    linked = tuple((Cell(name(task), f"tasks/{slug(task)}.html"),) for task in tasks)
    yield PageSection("Tasks", (), SiteTable(("Task",), linked))


def _agent(entries: Sequence[BoardEntry], agent: str) -> Iterable[PageSection]:
    for found in boards(entries).values():
        mine = [entry for entry in found if any(row.agent == agent for row in entry.rows)]
        for task_type in task_types(mine) if mine else ():
            table = board(found, task_type, "../", agent=agent)
            if table.rows:
                yield PageSection(f"{board_title(mine[0])}: {name(task_type)}", (), table)
        for entry in mine:
            if entry.audit is not None and agent in entry.audit.agents:
                said = f"{name(entry.audit.by)}, {entry.audit.date}: {entry.audit.found}"
                yield PageSection(f"Audit of {name(entry.name)}", (said,))


def _task(entries: Sequence[BoardEntry], task: str) -> Iterable[PageSection]:
    for found in boards(entries).values():
        best = best_known(found, task)
        if not best:
            continue
        title = f"Best known speed, {board_title(found[0])}"
        heading = ratio_heading(found[0].run.info.environment.device.emulated)
        plot = step_line(best), f"{name(task)}: best known {heading} over time", span(best)
        yield PageSection(title, (), best_table(best, heading), *plot)
    yield PageSection("Which trials count", (site_texts.BEST,))


def _boards_frame(entries: Sequence[BoardEntry]) -> pd.DataFrame:
    rows = []
    for found in boards(entries).values():
        for task_type in task_types(found):
            table = board(found, task_type)
            for cells in table.rows:
                texts = dict(zip(table.headings, (cell.text for cell in cells), strict=True))
                rows.append({"Board": board_title(found[0]), "Task type": name(task_type), **texts})
    return pd.DataFrame(rows)


def _write(path: Path, title: str, sections: Iterable[PageSection], up: str = "") -> Path:
    note = f"Written by arena {version()}. Names and texts of submissions are those of their authors."
    page = html_engine().get_template("site.html.j2")
    text = page.render(title=title, sections=list(sections), up=up, note=note) + "\n"
    return write_printable(path, text)

"""The tables of a leaderboard: boards, an agent's results, and the best known speed of a task over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from arena.processes.printable import shortened
from arena.reports import formats
from arena.reports.answers import answers
from arena.reports.groups import ALL, Group
from arena.reports.measure import Unit
from arena.reports.results import result_cells
from arena.reports.rows import TrialRow
from arena.reports.site_entries import BoardEntry, parsed, slug
from arena.reports.standings import ranked
from arena.results.record import Estimate

_NAME_CHARACTERS = 120
_ELSEWHERE = ("Agent", "Task type")
"""headings of a report's table that a board has as a link, or in its title"""
_WIDTH, _HEIGHT, _EDGE = 640.0, 160.0, 12.0


@dataclass(frozen=True)
class Cell:
    """One cell; `link` is an address of ours, relative to the page, or empty."""

    text: str
    link: str = ""


@dataclass(frozen=True)
class SiteTable:
    """A table with its headings."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Best:
    """A speedup that was the best known one when it was recorded."""

    moment: datetime | None
    row: TrialRow
    entry: BoardEntry
    speedup: Estimate


def name(text: str) -> str:
    """Return a name of a submission on one line."""
    return " ".join(shortened(text, _NAME_CHARACTERS).split())


def boards(entries: Sequence[BoardEntry]) -> dict[tuple[str, str, str], list[BoardEntry]]:
    """Return the entries by board: the same corpus, platform, architecture and device."""
    found: dict[tuple[str, str, str], list[BoardEntry]] = {}
    for entry in entries:
        found.setdefault(entry.board, []).append(entry)
    return dict(sorted(found.items()))


def board_title(entry: BoardEntry) -> str:
    """Return the device and the release."""
    device = entry.run.info.environment.device
    return f"{name(device.name)} ({name(device.platform)}, {name(device.arch)}), {entry.corpus}"


def task_types(entries: Sequence[BoardEntry]) -> list[str]:
    """Return the task types of some runs, all of them first."""
    return [ALL, *sorted({row.task_type for entry in entries for row in entry.rows})]


def board(entries: Sequence[BoardEntry], task_type: str, up: str = "", *, agent: str | None = None) -> SiteTable:
    """Return one board: agents in the order of `arena.results.order`, with the cells of a report's table.

    Args:
        entries: runs on one kind of device and one release of the corpus.
        task_type: one of `task_types`.
        up: leads from the page to the site's root.
        agent: show this one alone, at its places.
    """
    emulated = any(entry.run.info.environment.device.emulated for entry in entries)
    groups = [(entry, group) for entry in entries for group in entry.groups if group.task_type == task_type]
    of = {id(group): entry for entry, group in groups}
    placed = ranked((group, [row for row in e.rows if row.label == group.label]) for e, group in groups)
    shown = [(one, result_cells(one, emulated)) for one in placed]
    columns = [heading for heading in (shown[0][1] if shown else ()) if heading not in _ELSEWHERE]
    rows = [
        _cells(of[id(one.group)], one.group, [cells[heading] for heading in columns], up)
        for one, cells in shown
        if agent in (None, one.group.label)
    ]
    return SiteTable(("Agent", *columns, "Lost, private draw", "Verification", "Run", "Date"), tuple(rows))


def board_texts(entries: Sequence[BoardEntry]) -> tuple[str, ...]:
    """Return what stands above a board: the three answers of a report, and that ratios are of an emulation."""
    emulated = any(entry.run.info.environment.device.emulated for entry in entries)
    groups = [(entry, group) for entry in entries for group in entry.groups if group.task_type == ALL]
    placed = ranked((group, [row for row in e.rows if row.label == group.label]) for e, group in groups)
    return tuple(f"{one.question} {one.lead.rstrip('.')}. {one.rest}" for one in answers(placed, emulated))


def _cells(entry: BoardEntry, group: Group, texts: Sequence[str], up: str) -> tuple[Cell, ...]:
    chosen = None if group.task_type == ALL else group.task_type
    return (
        Cell(name(group.label), f"{up}agents/{slug(group.label)}.html"),
        *map(Cell, texts),
        Cell(formats.counted(entry.private_drop(group.label, chosen), Unit.SHARE)),
        Cell(entry.level(group.label, chosen)),
        Cell(name(entry.name) + (" (mixed)" if entry.mixed else ""), f"{up}runs/{slug(entry.name)}/index.html"),
        Cell(entry.day),
    )


def best_known(entries: Sequence[BoardEntry], task: str) -> list[Best]:
    """Return the trials on a task that were the fastest when they were recorded, the first one first."""
    timed = []
    for entry in entries:
        moments: Mapping[tuple[str, str, int], str] = {trial.key: trial.started_at for trial in entry.run.trials}
        for row in entry.rows:
            if row.task == task and row.speedup is not None and row.solved:
                moment = parsed(moments[row.agent, row.task, row.attempt])
                timed.append(Best(moment, row, entry, row.speedup))
    timed.sort(key=lambda one: (one.moment is None, one.moment.timestamp() if one.moment else 0.0))
    return list(_records(timed))


def _records(timed: Sequence[Best]) -> Iterator[Best]:
    most = 0.0
    for one in timed:
        if one.speedup.value > most:
            most = one.speedup.value
            yield one


def best_table(found: Sequence[Best], heading: str) -> SiteTable:
    """Return the best known speeds as a table, the newest first."""
    rows = [
        (
            Cell(_minute(one)),
            Cell(formats.speedup(one.speedup)),
            Cell(name(one.row.agent), f"../agents/{slug(one.row.agent)}.html"),
            Cell(name(one.entry.name), f"../runs/{slug(one.entry.name)}/index.html"),
            Cell(one.entry.level(one.row.agent)),
        )
        for one in reversed(found)
    ]
    return SiteTable(("Date", heading.capitalize(), "Agent", "Run", "Verification"), tuple(rows))


def _minute(one: Best) -> str:
    return one.moment.strftime("%Y-%m-%d %H:%M") if one.moment else "unknown"


def span(found: Sequence[Best]) -> str:
    """Return what a plot of the best known speeds spans: time from left to right, speed from 0 to the best."""
    top = f"{found[-1].speedup.value:.2f}×"
    return f"Left to right: {_minute(found[0])} to {_minute(found[-1])}; bottom to top: 0 to {top}."


def step_line(found: Sequence[Best]) -> str:
    """Return the points of a line of steps through the best known speeds, for an SVG of 640 × 160; '' for one."""
    values = [(one.moment.timestamp(), one.speedup.value) for one in found if one.moment is not None]
    if len(values) < 2:
        return ""
    first, span = values[0][0], (values[-1][0] - values[0][0]) or 1.0
    top = max(value for _, value in values)
    points, below = [], values[0][1]
    for moment, value in values:
        x = _EDGE + (_WIDTH - 2 * _EDGE) * (moment - first) / span
        points += [f"{x:.1f},{_y(below, top)}", f"{x:.1f},{_y(value, top)}"]
        below = value
    return " ".join(points)


def _y(value: float, top: float) -> str:
    return f"{_HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * value / top:.1f}"

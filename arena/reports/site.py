"""Write a leaderboard: static pages over many runs, which anybody may have handed in.

Every text is made plain and escaped, every file name is derived from a hash, and the pages forbid themselves to load
anything (Content-Security-Policy in `base.html.j2`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pandas as pd

from arena.errors import UsageError
from arena.processes.printable import shortened, write_printable
from arena.reports import formats, tables
from arena.reports.answers import answers
from arena.reports.groups import ALL, Group
from arena.reports.measure import Unit
from arena.reports.pages import write_report
from arena.reports.results import NOTE, result_rows
from arena.reports.rows import TrialRow
from arena.reports.site_entries import BoardEntry, out_of_range, parsed, slug
from arena.reports.standings import LEVEL_NOTE, RankedGroup, ranked
from arena.reports.templating import html_engine
from arena.results.environment import ratio_heading
from arena.results.record import Estimate
from arena.runs.records import RunRecords
from arena.version import version

Part = tuple[str, tuple[str, ...]]

INDEX = (
    f"{NOTE} {LEVEL_NOTE}",
    "Agents without a rank hand in files of the corpus, to calibrate, or have trials that are claimed: "
    "we have not judged these kernels again.",
    "Each board has one kind of device and one release of the corpus. Intervals are 95 %.",
    "Lost on unseen shapes: the share of trials, right on seen cases, that are wrong on a held-out case. Lost, private "
    "draw: the same on held-out cases that nobody knew before the kernel was handed in.",
)
NOT_JUDGED = "No agent is ranked: no run has all of its kernels judged again."
BEST = (
    "A trial counts where we judged its kernel again, the kernel is correct on every seen and every held-out case, and "
    "every check of its timing held. The speedup is relative to the task's baseline on the same device."
)
METHOD: tuple[Part, ...] = (
    (
        "From a kernel to a number",
        (
            "An agent gets a task: an operator, its baseline kernel and the seen cases. It hands in one kernel.",
            "The judge compiles the kernel in a sandbox and compares its outputs with a float64 reference, on secret "
            "inputs. It then times kernel and baseline in turns on the same data.",
            "The speedup of a case is baseline latency over candidate latency. The speedup of a trial is the geometric "
            "mean over its timed seen cases. The gain of an agent is the geometric mean of the speedups of its planned "
            "trials, where one that is not solved, or not shown to be faster than the baseline, counts as 1.",
            "Held-out cases are sizes that the agent never saw. They decide whether a trial is solved.",
        ),
    ),
    (
        "Verification levels",
        (
            "Records only: the numbers are claimed by the submitted records, checked for form alone. An agent with a "
            "claimed trial has no rank.",
            "Re-judged by us: kernels were judged again with `arena verify`. The board says how many trials, and how "
            "many of their figures are reproduced. The others are undecided.",
            "Claims not reproduced: what the records say is not what we found. The count stands beside the agent's "
            "name, and a trial with such a claim is not credited.",
            "Transcript audited: somebody, whom the agent's page names, read the transcripts of the sessions.",
        ),
    ),
    (
        "When a figure is reproduced",
        (
            "A status or a count of cases is reproduced where both are equal. A case that we did not judge is not "
            "reproduced, and neither is a figure that contradicts the recorded rounds.",
            "A speedup is reproduced where both 95 % intervals, widened by the documented timing error of the clock, "
            "overlap. It is undecided where they overlap and a timing is noisy, and then counts as no speedup.",
            "Figures of tasks that changed since the record are compared, but do not count.",
        ),
    ),
    (
        "Releases",
        (
            "A release of the corpus has a number and a hash over every task. A board never mixes two releases. "
            "A run on tasks that are in no release is on a board of its own.",
        ),
    ),
    ("More", ("docs/evaluate/measures.md defines every measure; docs/develop/measurement.md has the timing errors.",)),
)
SUBMIT: tuple[Part, ...] = (
    (
        "How to submit",
        (
            "1. Run your agent: `arena run my_run.yaml`. Do not change the run folder afterwards.",
            "2. Add the run folder below `submissions/` in a pull request: run.json, trials, submissions and, for the "
            "third level, transcripts.",
            "3. We judge its kernels again with `arena verify`, also on a private draw of held-out cases, and rebuild "
            "this site.",
        ),
    ),
    (
        "What is refused",
        (
            "Folders with links, files that are too large, names that are no names, and records that do not belong to "
            "the run. `arena site RUN --out DIR` says what is wrong before you hand it in.",
        ),
    ),
)


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
    placed = _placed(groups)
    placed += [RankedGroup(group, None) for entry, group in groups if not _has_place(entry, group)]
    shown = list(zip(placed, result_rows(placed, emulated), strict=True))
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
    placed = _placed(groups)
    if not placed:
        return (NOT_JUDGED,)
    return tuple(f"{one.question} {one.lead.rstrip('.')}. {one.rest}" for one in answers(placed, emulated))


def _has_place(entry: BoardEntry, group: Group) -> bool:
    """Return whether all of an agent's kernels were judged again here; of a run that nobody verified none was."""
    return entry.verification is not None and not entry.claimed(group.agent)


def _placed(groups: Sequence[tuple[BoardEntry, Group]]) -> list[RankedGroup]:
    """Return the agents whose every kernel was judged again here, at their places."""
    own = [(entry, group) for entry, group in groups if _has_place(entry, group)]
    return ranked((group, [row for row in entry.rows if row.label == group.label]) for entry, group in own)


def _cells(entry: BoardEntry, group: Group, texts: Sequence[str], up: str) -> tuple[Cell, ...]:
    chosen = None if group.task_type == ALL else group.task_type
    flag = entry.flag(group.label, chosen)
    return (
        Cell(name(group.label) + (f" ({flag})" if flag else ""), f"{up}agents/{slug(group.label)}.html"),
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
            if row.task == task and row.speedup is not None and row.solved and not entry.is_claim(row):
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
    _write(out / "method.html", "Method", [PageSection(*part) for part in METHOD])
    _write(out / "submit.html", "Submit a run", [PageSection(*part) for part in SUBMIT])
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
    yield PageSection(texts=INDEX)
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
                sentence = f"{name(entry.audit.by)}, {entry.audit.date}: {entry.audit.found}"
                yield PageSection(f"Audit of {name(entry.name)}", (sentence,))
            rows = [
                (Cell(name(key[1])), Cell(str(key[2])), Cell(str(one.verdict)), Cell(name(one.note)))
                for key, one in entry.kernels.items()
                if key[0] == agent
            ]
            if rows and entry.verdicts is not None:
                sentence = f"Read by {name(entry.verdicts.by)}, {entry.verdicts.date}."
                table = SiteTable(("Task", "Attempt", "Verdict", "Note"), tuple(rows))
                yield PageSection(f"Kernels of {name(entry.name)}", (sentence,), table)


def _task(entries: Sequence[BoardEntry], task: str) -> Iterable[PageSection]:
    for found in boards(entries).values():
        best = best_known(found, task)
        if not best:
            continue
        title = f"Best known speed, {board_title(found[0])}"
        heading = ratio_heading(found[0].run.info.environment.device.emulated)
        plot = step_line(best), f"{name(task)}: best known {heading} over time", span(best)
        yield PageSection(title, (), best_table(best, heading), *plot)
    yield PageSection("Which trials count", (BEST,))


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

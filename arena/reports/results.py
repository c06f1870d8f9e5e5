"""The table of agents: the same cells in the terminal, on pages and boards, in Markdown, CSV and JSON."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from arena.reports import formats
from arena.reports.groups import Group
from arena.reports.intervals import Quantity
from arena.reports.measure import Unit
from arena.reports.standings import LEVEL_NOTE, RankedGroup
from arena.results.environment import ratio_heading
from arena.results.outcome import Outcome

RESULTS = ("solved_rate", "overfit_rate", "gain", "mean_speedup", "relative_to_expert", "correctness_drop")
"""the measures of the table"""
_EXPERT = "To the expert"
NOTE = (
    "Solved: right on every case, seen and unseen. Gain: speedup over the task's baseline kernel, the geometric mean "
    "over the planned trials of a task, then over tasks; a trial that is not solved, or not shown to be faster, counts "
    "as 1×. Agents are ranked by it; ties by more solved, then by fewer overfit and fewer failed trials. Mean: of the "
    "tasks that are right on seen cases. Lost: of the trials that are. Brackets: 95 % intervals."
)


def results_frame(standings: Sequence[RankedGroup], emulated: bool) -> pd.DataFrame:
    """Return the table as text, one row per agent and task type."""
    return pd.DataFrame(result_rows(standings, emulated))


def result_rows(standings: Sequence[RankedGroup], emulated: bool) -> list[dict[str, str]]:
    """Return the rows by heading. Where nobody was compared with an expert's kernel, they have no column for it."""
    rows = [_cells(one, emulated) for one in standings]
    if all(row[_EXPERT] == formats.NONE for row in rows):
        for row in rows:
            del row[_EXPERT]
    return rows


def _cells(one: RankedGroup, emulated: bool) -> dict[str, str]:
    """Return the row of one agent by heading. Intervals and denominators stand behind the numbers."""
    group, mean = one.group, one.group.mean
    ratio = ratio_heading(emulated)
    return {
        "Agent": group.label,
        "Task type": group.task_type,
        "Rank": one.rank,
        "Solved": solved_text(group),
        "Overfit": formats.ratio_of(group.counts.outcomes.get(Outcome.OVERFIT, 0), group.counts.planned),
        gain_heading(emulated): gain_text(mean["gain"]),
        f"Mean {ratio}": formats.counted(mean["mean_speedup"], Unit.FACTOR),
        _EXPERT: formats.quantity(mean["relative_to_expert"], Unit.FACTOR),
        "Lost on unseen shapes": formats.counted(mean["correctness_drop"], Unit.SHARE),
    }


def notes(standings: Sequence[RankedGroup], emulated: bool) -> list[str]:
    """Return what a reader of the table must know, a sentence each."""
    found = [NOTE]
    if any(one.level for one in standings):
        found.append(LEVEL_NOTE)
    if any(one.place is None for one in standings):
        found.append("Agents without a rank hand in files of the corpus.")
    return [*found, f"Ratios are of {formats.EMULATED}."] if emulated else found


def gain_heading(emulated: bool) -> str:
    """Return the heading of the number that agents are ranked by."""
    return "Gain, emulated" if emulated else "Gain"


def gain_text(gain: Quantity | None) -> str:
    """Return the number that agents are ranked by as every page shows it: `1.26× [1.10×, 1.41×] of 6 tasks`."""
    if gain is None:
        return formats.NONE
    return f"{formats.quantity(gain, Unit.FACTOR)} of {gain.tasks} task{'' if gain.tasks == 1 else 's'}"


def solved_text(group: Group) -> str:
    """Return trials solved of those planned, with the interval of the share; `4/4 seen only` without unseen cases."""
    counts, solved = group.counts, group.mean["solved_rate"]
    seen_only = counts.outcomes.get(Outcome.SEEN_ONLY, 0)
    asides = [f"{formats.ratio_of(seen_only, counts.planned)} seen only"] if seen_only else []
    asides += [f"{counts.not_handed_in} not handed in"] if counts.not_handed_in else []
    if solved is not None and (counts.solved or not seen_only):
        asides.insert(0, f"{counts.solved}/{counts.planned} {formats.interval(solved, Unit.SHARE)}")
    return ", ".join(asides) or formats.NONE

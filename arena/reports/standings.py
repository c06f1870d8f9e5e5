"""Agents in order: what each is ranked by, its place, and whether the difference to the one above it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arena.reports.groups import ALL, Group
from arena.reports.intervals import Quantity, Tally, estimate
from arena.reports.measure import Attempts, by_task
from arena.reports.measures import gain_error
from arena.reports.rows import TrialRow
from arena.results.order import Standing, best_first, is_best
from arena.results.outcome import Outcome

LEVEL = "≈"
"""behind a place: the difference to the agent above is not shown"""
LEVEL_NOTE = f"{LEVEL}: no difference in gain to the agent above is shown; the interval of their ratio holds 1."


@dataclass(frozen=True)
class RankedGroup:
    """A group at its place.

    Attributes:
        place: from 1; None for a calibration agent, which has no rank.
        over_next: its gain over that of the next ranked agent, over the tasks that both were given; None for the last,
            and where nothing was timed.
        level: whether the difference to the agent above is not shown.
    """

    group: Group
    place: int | None
    over_next: Quantity | None = None
    level: bool = False

    @property
    def rank(self) -> str:
        """The place as a table shows it: `1`, `2 ≈`, or a dash."""
        return "–" if self.place is None else f"{self.place}{f' {LEVEL}' if self.level else ''}"

    @property
    def best(self) -> bool:
        """Return whether the agent is first and solved something."""
        return self.place == 1 and is_best(standing(self.group))


def standing(group: Group) -> Standing:
    """Return what an agent is ranked by. A trial without unseen cases to try counts as solved where it is right."""
    counts, gain = group.counts, group.mean["gain"]
    planned = max(1, counts.planned)
    solved = sum(number for outcome, number in counts.outcomes.items() if outcome.solves)
    overfit, failed = (counts.outcomes.get(one, 0) for one in (Outcome.OVERFIT, Outcome.FAILED))
    return Standing(
        group.agent,
        gain.value if gain else 1.0,
        solved / planned,
        overfit / planned,
        failed / planned,
        not group.calibrates,
    )


def ranked(found: Iterable[tuple[Group, Sequence[TrialRow]]]) -> list[RankedGroup]:
    """Return agents in order, each with its place.

    Args:
        found: an agent's group on all tasks or on one type, and all its rows.
    """
    ordered = best_first(found, lambda one: standing(one[0]))
    with_rank = [one for one in ordered if standing(one[0]).ranked]
    placed: list[RankedGroup] = []
    for place, (group, rows) in enumerate(with_rank, 1):
        above = placed[-1] if placed else None
        ratio = gain_ratio(rows, with_rank[place][1], group.task_type) if place < len(with_rank) else None
        level = above is not None and not shown(above.over_next)
        placed.append(RankedGroup(group, place, ratio, level))
    return placed + [RankedGroup(group, None) for group, _ in ordered if not standing(group).ranked]


def standings(rows: Sequence[TrialRow], groups: Sequence[Group]) -> list[RankedGroup]:
    """Return every group with its place among those of its task type; agents in the order of their places over all."""
    mine: dict[str, list[TrialRow]] = {}
    for row in rows:
        mine.setdefault(row.label, []).append(row)
    found: dict[str, list[RankedGroup]] = {}
    for task_type in dict.fromkeys((ALL, *(group.task_type for group in groups))):
        for one in ranked((group, mine[group.label]) for group in groups if group.task_type == task_type):
            found.setdefault(one.group.label, []).append(one)
    return [one for ones in found.values() for one in ones]


def overall(standings: Iterable[RankedGroup]) -> list[RankedGroup]:
    """Return the places over all task types."""
    return [one for one in standings if one.group.task_type == ALL]


def gain_ratio(one: Sequence[TrialRow], two: Sequence[TrialRow], task_type: str = ALL) -> Quantity | None:
    """Return the gain of one agent over that of another, over the tasks that both were given, paired by task.

    None where neither has a valid timing.
    """
    sides = []
    for rows in (one, two):
        mine = [row for row in rows if not row.latency_bound and task_type in (ALL, row.task_type)]
        sides.append({attempts[0].task: attempts for attempts in by_task(mine)})
    if not any(row.speedup for side in sides for attempts in side.values() for row in attempts):
        return None
    firsts, seconds = ({task: _mean_log(attempts) for task, attempts in side.items()} for side in sides)
    pairs = [(*firsts[task], *seconds[task]) for task in firsts if task in seconds]
    return estimate([Tally(first - second, 1, math.hypot(off, error)) for first, off, second, error in pairs], log=True)


def shown(ratio: Quantity | None) -> bool:
    """Return whether a ratio is shown to be above 1: its interval lies there."""
    return ratio is not None and ratio.low is not None and ratio.low > 1


def _mean_log(attempts: Attempts) -> tuple[float, float]:
    logs = [math.log(row.gain.value) if row.gain else 0.0 for row in attempts]
    return sum(logs) / len(logs), math.hypot(*map(gain_error, attempts)) / len(logs)

"""The three answers at the top of a report: which agent is best, by how much, and what it loses on unseen shapes.

Every statement has its interval; where two agents cannot be told apart, the answer says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from arena.model.environment import ratio_heading
from arena.reporting import formats
from arena.reporting.groups import ALL, Group
from arena.reporting.intervals import Quantity, Tally, estimate
from arena.reporting.measure import Attempts, Unit, by_task
from arena.reporting.measures import solved_error
from arena.reporting.rows import EXPERT, TrialRow

REFERENCES = (EXPERT, "noop")
"""agents that hand in files of the corpus: they are named as the best only where no other agent was run"""


@dataclass(frozen=True)
class ReportAnswer:
    """A question, its answer in a few words, and what a reader must know beside it."""

    question: str
    lead: str
    rest: str


def answers(rows: Sequence[TrialRow], groups: Sequence[Group], emulated: bool) -> tuple[ReportAnswer, ...]:
    """Answer the three questions from groups in the order of `best_first`; empty where no trial is recorded."""
    agents = {row.label: row.agent for row in rows}
    overall = [group for group in groups if group.task_type == ALL and group.counts.recorded]
    others = [group for group in overall if agents[group.label] not in REFERENCES]
    ranked = others or overall
    if not ranked:
        return ()
    ahead = {group.label: _ratio(rows, ranked[0].label, group.label) for group in ranked[1:]}
    apart = [group.label for group in overall if group not in ranked]
    return (_best(ranked, ahead, apart), _how_much(ranked, ahead, emulated), _lost(ranked[0]))


def best_first(groups: Sequence[Group]) -> list[Group]:
    """Return the groups with those of the best agent first: the greatest speedup of solved trials over all tasks."""
    rank = {group.label: _rank(group) for group in groups if group.task_type == ALL}
    return sorted(groups, key=lambda group: rank[group.label], reverse=True)


def _rank(group: Group) -> tuple[float, float, int]:
    speedup, solved = group.mean["solved_speedup"], group.mean["heldout_correctness_rate"]
    return speedup.value if speedup else 0.0, solved.value if solved else 0.0, group.counts.correct


def _best(ranked: Sequence[Group], ahead: dict[str, Quantity | None], apart: Sequence[str]) -> ReportAnswer:
    best = ranked[0]
    level = [name for name, ratio in ahead.items() if not _shown(ratio)]
    counts, solved = best.counts, best.mean["heldout_correctness_rate"]
    if not counts.correct:
        return ReportAnswer(
            "Which agent is best?", "None: no trial is correct.", f"{counts.planned} trials were planned."
        )
    lead = best.label + (f", but no difference to {_listed(level)} is shown" if level else "")
    if solved is None:
        return ReportAnswer(
            "Which agent is best?", lead, f"{counts.correct} of {counts.planned} trials pass the seen cases."
        )
    rest = f"It solves {counts.heldout_correct} of {counts.planned} trials: every case is correct, seen and unseen."
    most = max(ranked, key=lambda group: group.counts.heldout_correct)
    if most.counts.heldout_correct > counts.heldout_correct:
        rest += f" {most.label} solves more, {most.counts.heldout_correct}, and is slower over all trials."
    rest += f" Not ranked: {_listed(apart)}, from the corpus." if apart else ""
    return ReportAnswer("Which agent is best?", lead, rest if len(ranked) > 1 else f"No other agent was run. {rest}")


def _how_much(ranked: Sequence[Group], ahead: dict[str, Quantity | None], emulated: bool) -> ReportAnswer:
    best = ranked[0]
    question, speedup = "By how much, really?", best.mean["solved_speedup"]
    if speedup is None:
        return ReportAnswer(question, "Not known: nothing was timed.", "Or no held-out case was tried.")
    heading = ratio_heading(emulated)
    rest = [f"Geometric mean {heading} over {speedup.tasks} tasks; a trial that fails any case counts as 1×."]
    if len(ranked) > 1 and (ratio := ahead[ranked[1].label]) is not None:
        shown = "" if _shown(ratio) else " The interval holds 1×: no difference is shown."
        rest.append(f"Over {ranked[1].label}, the next: {_factor(ratio)}.{shown}")
    if relative := best.mean["relative_to_expert"]:
        rest.append(f"Over the expert: {_factor(relative)}, on the {relative.tasks} tasks that both pass.")
    if emulated:
        rest.append(f"These are {formats.EMULATED}.")
    return ReportAnswer(question, _factor(speedup), " ".join(rest))


def _lost(best: Group) -> ReportAnswer:
    question, drop = "What does it lose on unseen shapes?", best.mean["correctness_drop"]
    if drop is None:
        why = "none was correct on the seen cases" if not best.counts.correct else "the held-out stage did not run"
        return ReportAnswer(question, "Not known.", f"No trial of {best.label} was tried on unseen shapes: {why}.")
    lost, tried = round(drop.value * drop.count), round(drop.count)
    lead = f"{lost} of {tried} trials: {formats.quantity(drop, Unit.SHARE)}"
    rest = ["These pass every seen case and fail an unseen one." if lost else "None that passes every seen case fails."]
    worst = max(best.kinds, key=lambda kind: kind.drop.value, default=None)
    if worst is not None and worst.drop.value:
        rest.append(f"Most often kind {worst.kind}: {worst.cases - worst.passed} of {worst.cases} cases.")
    if retention := best.mean["speedup_retention"]:
        rest.append(f"Its speedup on unseen shapes is {_factor(retention)} that on seen ones.")
    return ReportAnswer(question, lead, " ".join(rest))


def _ratio(rows: Sequence[TrialRow], one: str, two: str) -> Quantity | None:
    """The ratio of two agents' solved speedups over the tasks that both were given, paired by task."""
    sides = []
    for label in (one, two):
        mine = [row for row in rows if row.label == label and not row.latency_bound]
        sides.append({attempts[0].task: attempts for attempts in by_task(mine)})
    if not any(row.solved_speedup for attempts in sides[0].values() for row in attempts):
        return None
    firsts, seconds = ({task: _mean_log(attempts) for task, attempts in side.items()} for side in sides)
    pairs = [(*firsts[task], *seconds[task]) for task in firsts if task in seconds]
    return estimate([Tally(one - two, 1, math.hypot(off, error)) for one, off, two, error in pairs], log=True)


def _mean_log(attempts: Attempts) -> tuple[float, float]:
    logs = [math.log(row.solved_speedup.value) if row.solved_speedup else 0.0 for row in attempts]
    return sum(logs) / len(logs), math.hypot(*map(solved_error, attempts)) / len(logs)


def _shown(ratio: Quantity | None) -> bool:
    return ratio is not None and ratio.low is not None and ratio.low > 1


def _factor(value: Quantity) -> str:
    return formats.quantity(value, Unit.FACTOR)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

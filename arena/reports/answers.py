"""The three answers at the top of a report: which agent is best, by how much, and what it loses on unseen shapes.

Every statement has its interval; where two agents cannot be told apart, the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arena.reports import formats
from arena.reports.groups import Group
from arena.reports.intervals import Quantity
from arena.reports.measure import Unit
from arena.reports.results import gain_text
from arena.reports.standings import RankedGroup, overall, shown
from arena.results.environment import ratio_heading
from arena.results.outcome import Outcome

BEST, MUCH, LOST = "Which agent is best?", "By how much, really?", "What does it lose on unseen shapes?"


@dataclass(frozen=True)
class ReportAnswer:
    """A question, its answer in a few words, and what a reader must know beside it."""

    question: str
    lead: str
    rest: str


def answers(standings: Sequence[RankedGroup], emulated: bool) -> tuple[ReportAnswer, ...]:
    """Answer the three questions; empty where no trial is recorded. Calibration agents are the best of nobody."""
    recorded = [one for one in overall(standings) if one.group.counts.recorded]
    ranked = [one for one in recorded if one.place is not None]
    apart = [one.group.label for one in recorded if one.place is None]
    if not recorded:
        return ()
    if not ranked:
        rest = f"{_listed(apart)} hand in files of the corpus, to calibrate."
        first = recorded[0].group
        return (ReportAnswer(BEST, "No agent was run.", rest), _how_much(recorded[:1], emulated), _lost(first))
    if not ranked[0].best:
        counts = ranked[0].group.counts
        rest = f"{counts.planned} trials of each agent were planned." if len(ranked) > 1 else _ended(counts.outcomes)
        none = ReportAnswer(BEST, "None: no trial is solved.", rest)
        much = ReportAnswer(MUCH, "Not at all.", "A trial that is not solved counts as 1×.")
        return (none, much, _lost(ranked[0].group))
    return (_best(ranked, apart), _how_much(ranked, emulated), _lost(ranked[0].group))


def _best(ranked: Sequence[RankedGroup], apart: Sequence[str]) -> ReportAnswer:
    best, counts = ranked[0].group, ranked[0].group.counts
    level = len(ranked) > 1 and not shown(ranked[0].over_next)
    lead = best.label + (f", but no difference to {ranked[1].group.label} is shown" if level else "")
    seen_only = counts.outcomes.get(Outcome.SEEN_ONLY, 0)
    if seen_only and not counts.solved:
        rest = f"{seen_only} of {counts.planned} trials are right on seen cases; no unseen one was tried."
    else:
        rest = f"It solves {counts.solved} of {counts.planned} trials: every case is correct, seen and unseen."
    most = max(ranked, key=lambda one: one.group.counts.solved).group
    if most.counts.solved > counts.solved:
        rest += f" {most.label} solves more, {most.counts.solved}, and gains less over all trials."
    rest += f" Not ranked: {_listed(apart)}, from the corpus." if apart else ""
    return ReportAnswer(BEST, lead, rest if len(ranked) > 1 else f"No other agent was run. {rest}")


def _how_much(ranked: Sequence[RankedGroup], emulated: bool) -> ReportAnswer:
    best = ranked[0].group
    gain = best.mean["gain"]
    if gain is None:
        return ReportAnswer(MUCH, "Not known: nothing was timed.", "")
    heading = ratio_heading(emulated)
    rule = "One that is not solved, or not shown to be faster, counts as 1×."
    rest = [f"Geometric mean {heading} to the baseline on seen cases, over all planned trials. {rule}"]
    if len(ranked) > 1 and (ratio := ranked[0].over_next) is not None:
        level = "" if shown(ratio) else " The interval holds 1×: no difference is shown."
        rest.append(f"Over {ranked[1].group.label}, the next: {_factor(ratio)}.{level}")
    if relative := best.mean["relative_to_expert"]:
        rest.append(f"Over the expert: {_factor(relative)}, on the {relative.tasks} tasks that both pass.")
    if emulated:
        rest.append(f"These are {formats.EMULATED}.")
    whose = f"{best.label}: " if ranked[0].place is None else ""
    return ReportAnswer(MUCH, f"{whose}{gain_text(gain)}", " ".join(rest))


def _lost(best: Group) -> ReportAnswer:
    drop = best.mean["correctness_drop"]
    if drop is None:
        right = any(outcome.right_on_seen for outcome in best.counts.outcomes)
        why = "the held-out stage did not run" if right else "none was correct on the seen cases"
        return ReportAnswer(LOST, "Not known.", f"No trial of {best.label} was tried on unseen shapes: {why}.")
    lost, tried = round(drop.value * drop.count), round(drop.count)
    lead = f"{lost} of {tried} trials: {formats.quantity(drop, Unit.SHARE)}"
    kept = "No trial that is right on seen cases is wrong on an unseen one."
    rest = ["These are right on every seen case and wrong on an unseen one." if lost else kept]
    worst = max(best.kinds, key=lambda kind: kind.drop.value, default=None)
    if worst is not None and worst.drop.value:
        rest.append(f"Most often kind {worst.kind}: {worst.cases - worst.passed} of {worst.cases} cases.")
    if retention := best.mean["speedup_retention"]:
        level = " The interval holds 1×: no change is shown." if _holds_1(retention) else ""
        rest.append(f"Its speedup on unseen shapes is {_factor(retention)} that on seen ones.{level}")
    return ReportAnswer(LOST, lead, " ".join(rest))


def _ended(outcomes: Mapping[Outcome, int]) -> str:
    return f"Trials ended: {', '.join(f'{number} {outcome}' for outcome, number in outcomes.items())}."


def _factor(value: Quantity) -> str:
    return formats.quantity(value, Unit.FACTOR)


def _holds_1(ratio: Quantity) -> bool:
    return ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

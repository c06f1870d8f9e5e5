"""The end of `arena run` and `arena report`: the table of agents, the answers, and what is not solved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arena.reports.answers import ReportAnswer, answers
from arena.reports.groups import groups
from arena.reports.intervals import Quantity
from arena.reports.results import RESULTS, notes, result_rows
from arena.reports.rows import TrialRow, trial_rows
from arena.reports.standings import RankedGroup, standings
from arena.results.outcome import Outcome
from arena.runs.records import RunRecords

_NOT_LISTED = (Outcome.NOT_HANDED_IN,)
_ALL_MEASURES = (*RESULTS, "speedup_retention")


@dataclass(frozen=True)
class SummaryRow:
    """One agent on one task type: the numbers, and the same as `cells`, texts by heading.

    `trials` are planned; `outcomes` counts how they ended. A measure is None where the trials cannot state it.
    """

    agent: str
    task_type: str
    place: int | None
    trials: int
    outcomes: Mapping[Outcome, int]
    measures: Mapping[str, Quantity | None]
    cells: Mapping[str, str]


@dataclass(frozen=True)
class FailedTrial:
    """One trial that is not solved, with the first reason for it."""

    agent: str
    task: str
    attempt: int
    outcome: Outcome
    detail: str


@dataclass(frozen=True)
class Summary:
    """The last lines of a command.

    Attributes:
        answers: to the three questions of a report, in the same words as on its page.
        rows: of the table of agents.
        notes: what its reader must know.
        failures: trials that handed in a kernel and are not solved.
    """

    answers: tuple[ReportAnswer, ...]
    rows: tuple[SummaryRow, ...]
    notes: tuple[str, ...]
    failures: tuple[FailedTrial, ...]


def summary_table(run: RunRecords) -> Summary:
    """Summarise one run, finished or not."""
    rows, emulated = trial_rows([run]), run.info.environment.device.emulated
    ordered = standings(rows, groups(rows, _ALL_MEASURES))
    failed = [row for row in rows if not row.outcome.solves and row.outcome not in _NOT_LISTED]
    return Summary(
        answers(ordered, emulated),
        tuple(_row(one, cells) for one, cells in zip(ordered, result_rows(ordered, emulated), strict=True)),
        tuple(notes(ordered, emulated)),
        tuple(FailedTrial(row.label, row.task, row.attempt, row.outcome, reason(row)) for row in failed),
    )


def _row(one: RankedGroup, cells: Mapping[str, str]) -> SummaryRow:
    group = one.group
    measures = {name: group.mean.get(name) for name in RESULTS}
    counts = group.counts
    return SummaryRow(group.label, group.task_type, one.place, counts.planned, counts.outcomes, measures, cells)


def _first_wrong_kind(row: TrialRow) -> str:
    return next((case.result.kind for case in row.cases if case.outcome and not case.correct), "")


def reason(row: TrialRow) -> str:
    """Return why a trial is not solved: what its stage said, else its first unseen case that is wrong."""
    if row.detail:
        stage = f"unseen case of kind {_first_wrong_kind(row)}" if row.outcome is Outcome.OVERFIT else row.status
        return f"{stage}: {row.detail}" if stage else row.detail
    wrong = next((case.result for case in row.cases if case.outcome and not case.correct), None)
    if wrong is not None:
        return f"unseen {wrong.case} ({wrong.label}): {wrong.candidate}{': ' if wrong.detail else ''}{wrong.detail}"
    return str(row.status or "no record")

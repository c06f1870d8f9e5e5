"""The compact table at the end of a run: one row per agent and task type, one line per trial that failed."""

from __future__ import annotations

from dataclasses import dataclass

from arena.model.verdict import Status
from arena.reporting.groups import MISSING, Group, groups
from arena.reporting.intervals import Quantity
from arena.reporting.rows import TrialRow, trial_rows
from arena.runs.records import RunRecords

SHOWN = ("heldout_correctness_rate", "correctness_drop", "mean_speedup", "geomean_speedup")
"""the measures of the table"""


@dataclass(frozen=True)
class SummaryRow:
    """One agent on one task type: counts of trials. `correct_heldout` None: not run.

    Of `trials` planned, those that are neither `handed_in` nor `not_handed_in` have no record.
    """

    agent: str
    task_type: str
    trials: int
    handed_in: int
    not_handed_in: int
    compiled: int
    correct_seen: int
    correct_heldout: int | None
    drop: Quantity | None
    mean_speedup: Quantity | None
    geomean_speedup: Quantity | None


@dataclass(frozen=True)
class FailedTrial:
    """One trial that did not pass; `status` is `missing` where there is no record."""

    agent: str
    task: str
    attempt: int
    status: str
    detail: str


@dataclass(frozen=True)
class Summary:
    """What `arena run` and `arena report` show at the end. `emulated`: say so wherever a speedup is shown."""

    rows: tuple[SummaryRow, ...]
    failures: tuple[FailedTrial, ...]
    emulated: bool


def summary_table(run: RunRecords) -> Summary:
    """Summarise one run, finished or not."""
    rows = trial_rows([run])
    failed = [row for row in rows if row.status is not Status.PASSED]
    return Summary(
        tuple(_row(group) for group in groups(rows, SHOWN)),
        tuple(_failure(row) for row in failed),
        run.info.environment.device.emulated,
    )


def _row(group: Group) -> SummaryRow:
    counts, heldout = group.counts, group.mean["heldout_correctness_rate"]
    return SummaryRow(
        agent=group.label,
        task_type=group.task_type,
        trials=counts.planned,
        handed_in=counts.handed_in,
        not_handed_in=counts.not_handed_in,
        compiled=counts.compiled,
        correct_seen=counts.correct,
        correct_heldout=None if heldout is None else counts.heldout_correct,
        drop=group.mean["correctness_drop"],
        mean_speedup=group.mean["mean_speedup"],
        geomean_speedup=group.mean["geomean_speedup"],
    )


def _failure(row: TrialRow) -> FailedTrial:
    return FailedTrial(row.label, row.task, row.attempt, str(row.status or MISSING), row.detail)

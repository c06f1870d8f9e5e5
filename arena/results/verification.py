"""The findings of `arena verify` about a run: each figure of its records beside the one that was measured again.

Written to `verification.json` and, with what was found here, to `judged.json`; read by the leaderboard.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from arena.results.environment import Environment
from arena.results.record import SCHEMA_VERSION, Estimate, Trial

FILE, JUDGED_FILE = "verification.json", "judged.json"
Value = Estimate | str | None
"""A speedup with its interval, or a word; None where one side has no such figure."""


class Reproduction(StrEnum):
    """The outcome of judging a figure again."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNDECIDED = "undecided"
    """an interval too wide to tell, another device, or no verdict"""


class FigureKind(StrEnum):
    """The sort of a figure."""

    STATUS = "statuses"
    CASES = "cases passed"
    CASE_SPEEDUP = "speedups of cases"
    SPEEDUP = "speedups of trials"
    CLAIM = "claims that contradict the record or the task"
    """recorded only where there is one"""


@dataclass(frozen=True)
class Figure:
    """One figure of a trial: what the record says, and what was found here."""

    kind: FigureKind
    name: str
    recorded: Value
    repeated: Value
    outcome: Reproduction
    reason: str = ""


@dataclass(frozen=True)
class PrivateDraw:
    """A trial on the held-out cases drawn for this verification. Only cases that the baseline passes count."""

    passed: int
    cases: int
    speedup: Estimate | None = None
    failed: tuple[str, ...] = ()
    """sizes of the cases that failed, each with its status"""


@dataclass(frozen=True)
class TrialVerification:
    """One trial, judged again. `task_changed`: the task is not the one that the record was made with."""

    agent: str
    task: str
    task_type: str
    attempt: int
    task_changed: bool
    figures: tuple[Figure, ...]
    private: PrivateDraw | None = None
    note: str = ""

    no_verdict: bool = False
    """whether the harness failed in this trial here"""

    @property
    def not_reproduced(self) -> int:
        """Return how many figures are not reproduced."""
        return sum(figure.outcome is Reproduction.NOT_REPRODUCED for figure in self.figures)

    @property
    def outcome(self) -> Reproduction:
        """That of the worst figure."""
        outcomes = {figure.outcome for figure in self.figures}
        for worst in (Reproduction.NOT_REPRODUCED, Reproduction.UNDECIDED):
            if worst in outcomes:
                return worst
        return Reproduction.REPRODUCED if outcomes else Reproduction.UNDECIDED


@dataclass(frozen=True)
class Verification:
    """A verification of one run. `records_hash` ties it to the records and kernels that it is about."""

    run: str
    records_hash: str
    verified_at: str
    arena_version: str
    recorded_on: Environment
    repeated_on: Environment
    clock_error: float | None
    """by how much each interval is widened on either side, relative: the documented timing error of the device"""
    selection_seed: int | None
    """seed of the choice of trials; None where all were chosen that fit the names asked for"""
    draw_seed: int
    """seed of the private held-out cases: secret until this file is written"""
    private_cases: int
    verifiable: int
    """trials of the run in which a kernel was handed in and judged"""
    trials: tuple[TrialVerification, ...] = ()
    notes: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    """the evaluation options of the verifier; those of the record have no effect"""
    schema_version: int = field(default=SCHEMA_VERSION)

    def counts(self, *, task_changed: bool, kind: FigureKind | None = None) -> Counter[Reproduction]:
        """Count figures, by default of every kind, of trials whose task is unchanged or has changed, by outcome."""
        figures = [fig for trial in self.trials if trial.task_changed is task_changed for fig in trial.figures]
        return Counter(figure.outcome for figure in figures if kind in (None, figure.kind))

    @property
    def complete(self) -> bool:
        """Return whether every trial of the run with a kernel was judged again."""
        return len(self.trials) == self.verifiable


@dataclass(frozen=True)
class JudgedHere:
    """The findings of the verifier alone, of which a board shows the figures: no record has a say in them.

    Attributes:
        records_hash: of the records and kernels that were judged again.
        trials: as they were judged here, without private cases and rounds.
        latency_bound: the tasks of the run that no size makes long.
        families: the family of each task of the run.
    """

    records_hash: str
    trials: tuple[Trial, ...]
    latency_bound: tuple[str, ...]
    families: dict[str, str]
    schema_version: int = SCHEMA_VERSION

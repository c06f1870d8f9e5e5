"""Outcomes of trials: one closed vocabulary, of which a stage's `Status` is a detail."""

from __future__ import annotations

from enum import StrEnum

from arena.results.record import AgentUsed, CaseResult, Evaluation, Split, Trial
from arena.results.verdict import CORRECT, Status

CALIBRATION = ("expert", "noop")
"""the agents that hand in files of the corpus, by the names that they have in records of older versions"""
_UNJUDGED = (Status.NOT_RUN, Status.HARNESS_ERROR)
_EXCUSED = (Status.TIMEOUT, Status.OUT_OF_MEMORY)
"""what says nothing of a candidate in a case that its baseline fails too: the device may be too small for it"""
RIGHT_BUT_INVALID = (Status.TIMING_MISMATCH, Status.IMPLAUSIBLE)


class Outcome(StrEnum):
    """The outcome of a trial. A new member is a decision: it needs a docstring, and a place in the order of agents."""

    SOLVED = "solved"
    """Every case is right, seen and unseen."""
    SEEN_ONLY = "seen only"
    """Every seen case is right, and no unseen case was to be tried."""
    OVERFIT = "overfit"
    """Every seen case is right, and an unseen one is wrong."""
    NOT_CREDITED = "not credited"
    """Every seen case is right, but its timing is not valid."""
    FAILED = "failed"
    """A seen case is wrong, or the kernel does not build."""
    NOT_HANDED_IN = "not handed in"
    """Nothing was handed in, or the baseline unchanged but for comments and white space."""
    NO_VERDICT = "no verdict"
    """The harness failed, there is no record yet, or the only case was none of the task's."""

    @property
    def solves(self) -> bool:
        """Return whether every case that was to be tried is right, with a valid timing."""
        return self in (Outcome.SOLVED, Outcome.SEEN_ONLY)

    @property
    def right_on_seen(self) -> bool:
        """Return whether every seen case is right."""
        return self.solves or self in (Outcome.OVERFIT, Outcome.NOT_CREDITED)


class HeldoutOutcome(StrEnum):
    """The outcome of one held-out case, for baseline and candidate."""

    BOTH_PASS = "both_pass"
    REGRESSION = "regression"
    BOTH_FAIL = "both_fail"
    IMPROVEMENT = "improvement"


def outcome_of(evaluation: Evaluation | None, *, calibration: bool = False) -> Outcome:
    """Return how a candidate did.

    Args:
        evaluation: what the judge said; None where nothing was handed in.
        calibration: the baseline was handed in to calibrate the harness, and counts like any other kernel.
    """
    if evaluation is None:
        return Outcome.NOT_HANDED_IN
    status = evaluation.status
    if status in _UNJUDGED or evaluation.made_up:
        return Outcome.NO_VERDICT
    if evaluation.unchanged and not calibration:
        return Outcome.NOT_HANDED_IN
    if status in RIGHT_BUT_INVALID:
        return Outcome.NOT_CREDITED
    return _generalized(evaluation) if status is Status.PASSED else Outcome.FAILED


def calibrates(agent: str, used: AgentUsed | None) -> bool:
    """Return whether an agent hands in files of the corpus, to calibrate: it is outside of every rank."""
    return agent in CALIBRATION if used is None else used.calibrates


def outcome_of_trial(trial: Trial | None) -> Outcome:
    """Return how a trial ended; one without a record has no verdict yet."""
    if trial is None or trial.status is Status.HARNESS_ERROR:
        return Outcome.NO_VERDICT
    return outcome_of(trial.evaluation, calibration=calibrates(trial.agent, trial.used))


def ending(outcome: Outcome, status: Status | None) -> str:
    """Return an outcome, and the status of the stage that ended the trial: `failed: wrong result`, `overfit`.

    Args:
        outcome: of the trial.
        status: of the first stage that failed, or `passed`; None where there is no record.
    """
    if status is None:
        return f"{outcome}: no record"
    told = (Status.PASSED, Status.NOTHING_SUBMITTED)
    return str(outcome) if status in told else f"{outcome}: {status.replace('_', ' ')}"


def ended_by(evaluation: Evaluation) -> Status:
    """Return the status of the first stage that failed, that of held-out cases too; `passed` where none did."""
    if evaluation.status is not Status.PASSED:
        return evaluation.status
    ended = (case.candidate for case in evaluation.split(Split.HELDOUT))
    return next((status for status in ended if status not in (*CORRECT, Status.NOT_RUN)), Status.PASSED)


def heldout_ran(evaluation: Evaluation) -> bool:
    """Return whether any held-out case was evaluated."""
    return any(result.candidate not in _UNJUDGED for result in evaluation.split(Split.HELDOUT))


def heldout_outcome(result: CaseResult, ran: bool) -> HeldoutOutcome | None:
    """Return the outcome of a held-out case, or None where the harness failed or the held-out stage never ran.

    A case that the candidate did not reach, since it hung on an earlier one, is a regression even where the record
    does not repeat the baseline's result: baselines pass held-out cases, and no candidate may shrink its own
    denominator.
    """
    if not ran or result.split is Split.SEEN or Status.HARNESS_ERROR in (result.baseline, result.candidate):
        return None
    if result.baseline is Status.NOT_RUN:
        return HeldoutOutcome.REGRESSION if result.candidate is Status.NOT_RUN else None
    passes = result.candidate in CORRECT
    if result.baseline in CORRECT:
        return HeldoutOutcome.BOTH_PASS if passes else HeldoutOutcome.REGRESSION
    return HeldoutOutcome.IMPROVEMENT if passes else HeldoutOutcome.BOTH_FAIL


def _generalized(evaluation: Evaluation) -> Outcome:
    """Return the outcome of a candidate that passed every gate, by its held-out cases.

    Where the baseline fails too, a candidate that is wrong is wrong: a PyTorch function in float16 may overflow. A
    timeout there, or too little memory, says nothing of the candidate; where all cases are such, there is no verdict.
    """
    cases = evaluation.split(Split.HELDOUT)
    if not cases:
        return Outcome.SEEN_ONLY
    ran = heldout_ran(evaluation)
    outcomes = [(heldout_outcome(case, ran), case.candidate) for case in cases]
    found = {outcome for outcome, _ in outcomes}
    wrong = any(one is HeldoutOutcome.BOTH_FAIL and status not in _EXCUSED for one, status in outcomes)
    if HeldoutOutcome.REGRESSION in found or wrong:
        return Outcome.OVERFIT
    return Outcome.SOLVED if None not in found and found != {HeldoutOutcome.BOTH_FAIL} else Outcome.NO_VERDICT

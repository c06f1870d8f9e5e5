"""How trials end: every outcome, and that no stage's `passed` hides an unseen case that is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.results.outcome import CALIBRATION, Outcome, ending, outcome_of, outcome_of_trial
from arena.results.record import AgentUsed, CaseResult, Trial
from arena.results.reward import rewards_of
from arena.results.verdict import Status
from tests.reports import builders as b

WRONG = b.heldout("h2", None, candidate=Status.WRONG_RESULT)
REFUSED = b.heldout("h6", None, baseline=Status.WRONG_RESULT, candidate=Status.LAUNCH_ERROR)
BOTH_WRONG = b.heldout("h4", None, baseline=Status.WRONG_RESULT, candidate=Status.WRONG_RESULT)
BOTH_FAIL = b.heldout("h3", None, baseline=Status.OUT_OF_MEMORY, candidate=Status.OUT_OF_MEMORY)
BROKEN = b.heldout("h4", None, candidate=Status.HARNESS_ERROR)
UNTRIED = b.heldout("h5", None, baseline=Status.NOT_RUN, candidate=Status.NOT_RUN)


@pytest.mark.parametrize(
    ("status", "heldout", "expected"),
    [
        (Status.PASSED, [b.heldout()], Outcome.SOLVED),
        (Status.PASSED, [b.heldout(candidate=Status.TIMING_MISMATCH)], Outcome.SOLVED),
        (Status.PASSED, [], Outcome.SEEN_ONLY),
        (Status.PASSED, [b.heldout(), WRONG], Outcome.OVERFIT),
        (Status.PASSED, [BROKEN, WRONG], Outcome.OVERFIT),
        (Status.PASSED, [b.heldout(), BOTH_FAIL], Outcome.SOLVED),
        (Status.PASSED, [BOTH_FAIL], Outcome.NO_VERDICT),
        (Status.PASSED, [b.heldout(), BOTH_WRONG], Outcome.OVERFIT),
        (Status.PASSED, [BOTH_WRONG], Outcome.OVERFIT),
        (Status.PASSED, [b.heldout(), REFUSED], Outcome.OVERFIT),
        (Status.PASSED, [b.heldout(), BROKEN], Outcome.NO_VERDICT),
        (Status.PASSED, [UNTRIED], Outcome.NO_VERDICT),
        (Status.TIMING_MISMATCH, [UNTRIED], Outcome.NOT_CREDITED),
        (Status.IMPLAUSIBLE, [UNTRIED], Outcome.NOT_CREDITED),
        (Status.WRONG_RESULT, [UNTRIED], Outcome.FAILED),
        (Status.COMPILE_ERROR, [], Outcome.FAILED),
        (Status.TIMEOUT, [], Outcome.FAILED),
    ],
)
def test_outcomes(status: Status, heldout: list[CaseResult], expected: Outcome) -> None:
    trial = b.trial(status=status, cases=[b.case(), *heldout])
    assert outcome_of(trial.evaluation) is outcome_of_trial(trial) is expected


def test_every_status_of_an_evaluation_has_an_outcome() -> None:
    for status in set(Status) - {Status.HARNESS_ERROR, Status.NOTHING_SUBMITTED, Status.NOT_RUN}:
        found = outcome_of(b.trial(status=status, cases=[b.case(candidate=Status.NOT_RUN)]).evaluation)
        assert found.right_on_seen is (status in (Status.PASSED, Status.TIMING_MISMATCH, Status.IMPLAUSIBLE))


def test_what_has_no_evaluation() -> None:
    assert outcome_of(None) is outcome_of_trial(b.trial(status=Status.NOTHING_SUBMITTED)) is Outcome.NOT_HANDED_IN
    assert outcome_of_trial(b.trial(status=Status.HARNESS_ERROR)) is outcome_of_trial(None) is Outcome.NO_VERDICT


def unchanged(agent: str, status: Status = Status.PASSED) -> Trial:
    trial = b.trial(status=status, cases=[b.case(), b.heldout()], agent=agent)
    assert trial.evaluation is not None
    return replace(trial, evaluation=replace(trial.evaluation, unchanged=True))


def test_the_baseline_unchanged_is_not_handed_in_but_by_a_calibration_agent() -> None:
    assert outcome_of_trial(unchanged("alpha")) is Outcome.NOT_HANDED_IN
    assert {outcome_of_trial(unchanged(agent)) for agent in CALIBRATION} == {Outcome.SOLVED}
    named = replace(unchanged("again"), used=AgentUsed(calibrates=True))
    assert outcome_of_trial(named) is Outcome.SOLVED, "records say which agents calibrate, whatever their names"
    assert outcome_of_trial(replace(unchanged("noop"), used=AgentUsed("p1"))) is Outcome.NOT_HANDED_IN


def test_an_outcome_names_the_stage_that_ended_the_trial() -> None:
    assert ending(Outcome.FAILED, Status.WRONG_RESULT) == "failed: wrong result"
    assert ending(Outcome.OVERFIT, Status.PASSED) == "overfit"
    assert ending(Outcome.NO_VERDICT, None) == "no verdict: no record"
    assert ending(Outcome.NOT_HANDED_IN, Status.NOTHING_SUBMITTED) == "not handed in"


def test_a_kernel_that_is_wrong_on_an_unseen_case_earns_what_a_wrong_one_does() -> None:
    overfit = b.trial(cases=[b.case("s1", 9.0), b.heldout(), WRONG]).evaluation
    wrong = b.trial(status=Status.WRONG_RESULT, cases=[b.case(candidate=Status.WRONG_RESULT)]).evaluation
    assert rewards_of(overfit) == rewards_of(wrong) == (-2.0, 0.0)
    assert rewards_of(b.trial(cases=[b.case("s1", 2.1), b.heldout()]).evaluation) == pytest.approx((1.1, 0.5))
    assert rewards_of(None) == (-6.0, 0.0)

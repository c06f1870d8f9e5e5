"""Which figures of a record are reproduced when its kernel is judged again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import msgspec
import pytest

from arena.package import PACKAGE
from arena.reports.reproduction import CLOCK_ERROR, compare_trial, decide
from arena.results.effort import Effort
from arena.results.record import CaseResult, Estimate, Split, Trial
from arena.results.verdict import Status
from arena.results.verification import Figure, FigureKind, Reproduction, TrialVerification, Verification
from tests.reports.builders import CPU, case, environment, heldout, rounds_of, timing, trial

OWN = ("seen-01", "heldout-01", "heldout-02")
YES, NO, UNDECIDED = Reproduction.REPRODUCED, Reproduction.NOT_REPRODUCED, Reproduction.UNDECIDED


def estimate(low: float, high: float) -> Estimate:
    return Estimate((low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("first", "second", "error", "noisy", "outcome"),
    [
        ((1.0, 1.2), (1.1, 1.3), CLOCK_ERROR, False, YES),
        ((1.0, 1.2), (1.205, 1.3), CLOCK_ERROR, False, YES),  # within the error of both clocks
        ((1.0, 1.2), (1.22, 1.3), CLOCK_ERROR, False, NO),
        ((1.22, 1.3), (1.0, 1.2), CLOCK_ERROR, False, NO),
        ((1.0, 1.2), (1.205, 1.3), 0.0, False, NO),
        ((0.5, 2.0), (1.1, 1.3), CLOCK_ERROR, True, UNDECIDED),
        ((0.5, 1.0), (1.1, 1.3), CLOCK_ERROR, True, NO),
        ((0.5, 1.0), (1.1, 1.3), None, False, UNDECIDED),
        ((1.0, 1.2), (1.1, 1.3), None, False, YES),
    ],
)
def test_intervals_that_overlap_with_the_error_of_the_clock_agree(
    first: tuple[float, float], second: tuple[float, float], error: float | None, noisy: bool, outcome: Reproduction
) -> None:
    assert decide(estimate(*first), estimate(*second), error=error, noisy=noisy)[0] is outcome


def passed(*extra: CaseResult, speed: float = 2.0, candidate: Status = Status.PASSED) -> Trial:
    own = (case("seen-01", speed), heldout("heldout-01", speed, candidate=candidate), heldout("heldout-02", speed))
    return trial(cases=(*own, *extra))


def compared(recorded: Trial, repeated: Trial, *, changed: bool = False) -> TrialVerification:
    return compare_trial(recorded, repeated, task_changed=changed, own_cases=OWN)


def outcomes(found: TrialVerification) -> dict[str, Reproduction]:
    return {figure.name: figure.outcome for figure in found.figures}


def test_the_same_results_are_reproduced_figure_by_figure() -> None:
    found = compared(passed(), passed())
    assert set(outcomes(found).values()) == {YES} and found.outcome is YES and found.private is None
    assert list(outcomes(found)) == [
        "status",
        "compiled",
        "correct",
        "seen cases passed",
        "held-out cases passed",
        "outcome",
        "speedup at seen-01 M=4 N=256 float32",
        "speedup over 1 cases",
        "held-out speedup at heldout-01 M=4 N=256 float32",
        "held-out speedup at heldout-02 M=4 N=256 float32",
        "held-out speedup over 2 cases",
    ]


def test_another_status_speed_or_held_out_case_is_not_reproduced() -> None:
    slower = outcomes(compared(passed(speed=2.0), passed(speed=1.5)))
    assert slower["speedup over 1 cases"] is NO and slower["status"] is YES
    wrong = compared(passed(), passed(candidate=Status.WRONG_RESULT))
    assert outcomes(wrong)["held-out cases passed"] is NO
    counts = next(figure for figure in wrong.figures if figure.name == "held-out cases passed")
    assert (counts.recorded, counts.repeated) == ("2/2", "1/2") and "passed → wrong_result" in counts.reason
    missing = next(figure for figure in wrong.figures if figure.name.startswith("held-out speedup at heldout-01"))
    assert missing.repeated is None and missing.outcome is NO
    failed = compared(passed(), trial(status=Status.COMPILE_ERROR, cases=()))
    assert {outcomes(failed)[name] for name in ("status", "compiled", "correct")} == {NO} and failed.outcome is NO


def test_another_kernel_than_the_recorded_one_is_named() -> None:
    here = passed()
    assert here.evaluation is not None
    other = replace(here, evaluation=replace(here.evaluation, candidate_hash="another"))
    assert compared(here, other).figures[0] == Figure(
        compared(here, other).figures[0].kind, "kernel", "c0", "another", NO
    )
    nothing = trial(status=Status.NOTHING_SUBMITTED)
    assert compared(here, nothing).outcome is NO and outcomes(compared(here, nothing))["kernel"] is NO


def test_a_harness_that_fails_and_another_device_decide_nothing_about_speed() -> None:
    broken = compared(passed(), trial(status=Status.HARNESS_ERROR))
    assert broken.no_verdict and broken.outcome is UNDECIDED
    here = passed(speed=1.0)
    elsewhere = replace(here, environment=environment(CPU))
    found = outcomes(compared(passed(), elsewhere))
    assert found["status"] is YES and found["speedup over 1 cases"] is UNDECIDED


def test_a_case_of_other_sizes_is_not_reproduced_and_untimed_ones_have_no_figure() -> None:
    here = passed()
    assert here.evaluation is not None
    cases = [
        replace(one, label="M=8") if one.case == "seen-01" else replace(one, timing=None)
        for one in here.evaluation.cases
    ]
    changed = replace(here, evaluation=replace(here.evaluation, cases=tuple(cases)))
    found = compared(passed(), changed, changed=True)
    names = ["status", "compiled", "correct", "held-out cases passed", "outcome", "case seen-01 M=4 N=256 float32"]
    assert found.task_changed and list(outcomes(found)) == names
    assert outcomes(found)[names[-1]] is NO


@pytest.mark.parametrize("change", [{"case": "heldout-03"}, {"label": "M=1"}, {"split": Split.SEEN}, {"case": "h"}])
def test_a_claimed_case_that_was_not_judged_here_is_not_reproduced(change: dict[str, Any]) -> None:
    here = passed(candidate=Status.WRONG_RESULT)
    forged = replace(passed().evaluation.cases[1], **change)  # type: ignore[union-attr]
    recorded = trial(cases=[case("seen-01"), forged, heldout("heldout-02", 2.0)])
    found = compared(recorded, here)
    assert outcomes(found)[f"case {forged.label}"] is NO and outcomes(found)["outcome"] is NO
    elsewhere = compared(recorded, replace(here, environment=environment(CPU)))
    expected = UNDECIDED if forged.case == "heldout-01" else NO
    assert outcomes(elsewhere)[f"case {forged.label}"] is expected


def test_a_case_that_the_record_leaves_out_counts_in_the_outcome() -> None:
    without = trial(cases=[case("seen-01"), heldout("heldout-02", 2.0)])
    assert outcomes(compared(without, passed(candidate=Status.WRONG_RESULT)))["outcome"] is NO
    untimed = trial(cases=[case("seen-01"), heldout("heldout-01", None), heldout("heldout-02", 2.0)])
    assert outcomes(compared(without, untimed))["heldout cases with a result"] is NO
    assert compared(untimed, untimed).outcome is YES
    assert compared(trial(cases=[case("seen-01")]), passed()).outcome is YES  # no unseen case was to be tried
    assert outcomes(compared(trial(cases=[case("seen-01")]), passed(candidate=Status.CRASH)))["outcome"] is NO


def test_a_record_cannot_keep_the_cases_alone_in_which_its_kernel_is_fast() -> None:
    """Neither by leaving out a case or a regime, nor by leaving out its timing."""
    slow = case("seen-02", 0.5), case("seen-01", 0.5, regime="skewed")
    for one in slow:
        here = passed(one)
        for recorded in (passed(), passed(replace(one, timing=None))):
            found = compared(recorded, here)
            claim = next(figure for figure in found.figures if figure.name == "cases with a speedup")
            assert (claim.recorded, claim.repeated, claim.outcome) == ("1 cases", "2 cases", NO)
            means = [figure for figure in found.figures if figure.name.startswith("speedup over ")]
            assert [figure.outcome for figure in means] == [NO], "that of here is over all that was timed here"
            assert found.outcome is NO and one.label in claim.reason
        assert compared(here, here).outcome is YES
        assert compared(passed(), here, changed=True).outcome is YES
    elsewhere = replace(passed(slow[0]), environment=environment(CPU))
    assert outcomes(compared(passed(), elsewhere))["cases with a speedup"] is UNDECIDED
    unseen = outcomes(compared(passed(), passed(heldout("heldout-03", 0.5))))
    assert "cases with a held-out speedup" not in unseen  # it is private
    silent = trial(cases=[case("seen-01", 2.0), heldout("heldout-01", 2.0), heldout("heldout-02", None)])
    assert outcomes(compared(silent, passed()))["cases with a held-out speedup"] is NO
    none = trial(cases=[case("seen-01", 2.0), heldout("heldout-01", None), heldout("heldout-02", None)])
    assert outcomes(compared(none, passed()))["cases with a held-out speedup"] is NO
    assert none.evaluation is not None
    screen = replace(none, evaluation=replace(none.evaluation, effort=Effort.SCREEN))
    assert compared(screen, passed()).outcome is YES


def test_a_record_cannot_have_timings_of_cases_that_are_not_timed() -> None:
    quick = heldout("heldout-01", 50.0)
    recorded = trial(cases=[case("seen-01", 2.0), quick, heldout("heldout-02", 2.0)])
    here = trial(cases=[case("seen-01", 2.0), replace(quick, timing=None), heldout("heldout-02", 2.0)])
    found = outcomes(compared(recorded, here))
    assert found[f"held-out speedup at {quick.label}"] is NO and found["held-out speedup over 1 cases"] is NO
    emulated = environment(CPU)
    again = compared(*(replace(one, environment=emulated) for one in (recorded, here)))
    assert outcomes(again)[f"held-out speedup at {quick.label}"] is UNDECIDED


def test_latencies_that_weigh_recorded_traffic_are_compared() -> None:
    """A speedup stays the same where both latencies are a thousand times as long."""
    slow = case("seen-02", 0.5, calls=10)
    here = trial(cases=[case("seen-01", 4.0, calls=10), slow])
    recorded = trial(cases=[case("seen-01", 4.0, calls=10, baseline_ms=1000.0), slow])
    assert outcomes(compared(here, here))["speedup of recorded traffic"] is YES
    found = compared(recorded, here)
    assert [figure.name for figure in found.figures if figure.outcome is NO] == ["speedup of recorded traffic"]


def forged_timing(**changes: Any) -> Trial:
    first = case("seen-01")
    assert first.timing is not None
    return trial(cases=[replace(first, timing=replace(first.timing, **changes)), *passed().evaluation.cases[1:]])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "changes",
    [
        {"speedup": Estimate(40.0, 39.5, 40.5)},
        {"speedup": Estimate(2.0, 0.5, 100.0)},
        {"speedup": Estimate(2.0, 2.0, 2.0)},
        {"candidate_ms": Estimate(0.025, 0.025, 0.025)},
        {"baseline_ms": Estimate(20.0, 20.0, 20.0)},
        {"rounds": ()},
        {"calls_long": 10},
        {"rounds": rounds_of(2.0, 1e-6)},
        {"rounds": rounds_of(2.0, 1.0)[::8]},
    ],
)
def test_a_timing_that_contradicts_its_rounds_is_not_reproduced(changes: dict[str, Any]) -> None:
    found = compared(forged_timing(**changes), passed())
    claims = [figure for figure in found.figures if figure.kind is FigureKind.CLAIM]
    assert [figure.outcome for figure in claims] == [NO] and "rounds" in claims[0].reason


def test_speedups_of_a_record_are_those_of_its_rounds() -> None:
    """An interval from 0.5 to 100 that is said not to be noisy would overlap with any other."""
    found = compared(forged_timing(speedup=Estimate(40.0, 0.5, 100.0)), passed(speed=1.0))
    speed = next(figure for figure in found.figures if figure.name == "speedup at seen-01 M=4 N=256 float32")
    assert speed.outcome is NO and isinstance(speed.recorded, Estimate)
    assert speed.recorded.value == pytest.approx(2.0) and speed.recorded.high < 2.1


def test_rounds_that_are_noisy_decide_nothing_whatever_the_record_says() -> None:
    rounds = enumerate(rounds_of(2.0, 1.0))
    wild = tuple(replace(one, candidate_long_s=one.candidate_long_s * (1 + place / 4)) for place, one in rounds)
    found = compared(forged_timing(rounds=wild), passed())
    assert outcomes(found)["speedup at seen-01 M=4 N=256 float32"] is not YES


def test_a_noisy_case_is_undecided() -> None:
    noisy = CaseResult("seen-01", Split.SEEN, "", "M=1", Status.PASSED, Status.PASSED, timing=timing(2.0, noisy=True))
    found = outcomes(compared(trial(cases=(noisy,)), trial(cases=(noisy,))))
    assert found["speedup at M=1"] is UNDECIDED


def test_private_cases_are_counted_apart_where_the_baseline_passes() -> None:
    extra = (
        heldout("heldout-03", 1.5),
        heldout("heldout-04", candidate=Status.WRONG_RESULT),
        heldout("heldout-05", baseline=Status.TIMEOUT, candidate=Status.TIMEOUT),
    )
    found = compared(passed(), passed(*extra))
    assert found.outcome is YES and found.private is not None
    assert (found.private.passed, found.private.cases) == (1, 2)
    assert found.private.failed == ("heldout-04 M=4 N=256 float32: wrong_result",)
    assert found.private.speedup is not None and found.private.speedup.value == pytest.approx(1.5)


def test_the_schema_is_that_of_the_file() -> None:
    kept = json.loads((PACKAGE / "task" / "schemas" / "verification.json").read_text(encoding="utf-8"))
    made = json.loads(json.dumps(msgspec.json.schema(Verification)))
    assert {name: kept[name] for name in made} == made
    figure = Figure(FigureKind.SPEEDUP, "speedup", estimate(1.0, 1.2), None, NO)
    found = TrialVerification("a", "t", "hip2hip", 1, False, (figure,))
    here = environment()
    file = Verification("r", "0", "", "", here, here, None, None, 1, 8, 1, (found,))
    jsonschema.validate(json.loads(msgspec.json.encode(file)), kept)

"""Which figures of a record are reproduced when its kernel is judged again."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema
import msgspec
import pytest

from arena.package import PACKAGE
from arena.reports.reproduction import CLOCK_ERROR, compare_trial, decide
from arena.results.record import CaseResult, Estimate, Split, Trial
from arena.results.verdict import Status
from arena.results.verification import Figure, FigureKind, Reproduction, TrialVerification, Verification
from tests.reports.builders import CPU, case, environment, heldout, timing, trial

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
    return compare_trial(recorded, repeated, task_changed=changed, own_heldout=2)


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


def test_cases_of_other_sizes_are_not_compared_and_untimed_ones_have_no_figure() -> None:
    here = passed()
    assert here.evaluation is not None
    cases = [
        replace(one, label="M=8") if one.case == "seen-01" else replace(one, timing=None)
        for one in here.evaluation.cases
    ]
    changed = replace(here, evaluation=replace(here.evaluation, cases=tuple(cases)))
    found = compared(passed(), changed, changed=True)
    assert found.task_changed and list(outcomes(found)) == ["status", "compiled", "correct", "held-out cases passed"]


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
    file = Verification("r", "0", "", "", here, here, None, True, None, 1, 8, 1, (found,))
    jsonschema.validate(json.loads(msgspec.json.encode(file)), kept)

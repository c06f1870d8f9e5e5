"""Impossible results cannot be built; environments say what may be mixed; rooflines by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.results.environment import DeviceFacts, Environment
from arena.results.record import CaseResult, CaseTiming, Estimate, Evaluation, Mode, RunInfo, Split, Trial, counted
from arena.results.verdict import Stage, Status, Verdict

GPU = DeviceFacts(
    platform="rocm",
    vendor="amd",
    arch="gfx942",
    name="AMD Instinct MI300X",
    wave_size=64,
    memory_bytes=192 << 30,
    last_level_cache_bytes=256 << 20,
    peak_bandwidth_gbs=5000.0,
    peak_tflops={"float32": 100.0, "tf32": 500.0, "float16": 1000.0},
)
HERE = Environment(GPU, "session")
TIMING = CaseTiming(
    baseline_ms=Estimate(2.0, 1.9, 2.1),
    candidate_ms=Estimate(1.0, 0.9, 1.1),
    speedup=Estimate(2.0, 1.9, 2.1),
    mode=Mode.GRAPH,
    calls_short=10,
    calls_long=20,
    cache="distinct sets",
    rounds=(),
    roofline_ms=0.25,
)


def result(candidate: Status, timing: CaseTiming | None = None) -> CaseResult:
    return CaseResult(
        case="seen-01",
        split=Split.SEEN,
        kind="",
        label="M=1",
        baseline=Status.PASSED,
        candidate=candidate,
        timing=timing,
    )


def evaluation(*verdicts: Verdict) -> Evaluation:
    return Evaluation(
        task="a/b/c",
        task_type="hip2hip",
        task_hash="t",
        candidate_hash="c",
        environment=HERE,
        verdicts=verdicts,
        cases=(result(Status.PASSED, TIMING), replace(result(Status.PASSED), split=Split.HELDOUT)),
    )


def trial(status: Status, judged: Evaluation | None = None) -> Trial:
    return Trial(
        run="r",
        task="a/b/c",
        task_type="hip2hip",
        task_hash="t",
        agent="noop",
        attempt=1,
        status=status,
        environment=HERE,
        started_at="2025-01-01T00:00:00+00:00",
        seconds=1.0,
        evaluation=judged,
    )


def test_an_interval_holds_its_estimate() -> None:
    assert Estimate(2.0, 1.0, 3.0).half_width == 0.5
    assert Estimate(0.0, 0.0, 0.0).half_width == float("inf")
    with pytest.raises(ValueError, match="does not hold"):
        Estimate(4.0, 1.0, 3.0)
    with pytest.raises(ValueError, match="does not hold"):
        Estimate(float("nan"), 1.0, 3.0)


def test_no_timing_without_correctness() -> None:
    for status in Status:
        if status in (Status.PASSED, Status.TIMING_MISMATCH, Status.IMPLAUSIBLE):
            assert (result(status, TIMING).speedup is not None) is (status is Status.PASSED)
        else:
            with pytest.raises(ValueError, match="needs a correct candidate"):
                result(status, TIMING)


@pytest.mark.parametrize(
    ("speedup", "noisy", "credit"),
    [
        (Estimate(2.0, 1.9, 2.1), False, 2.0),
        (Estimate(2.0, 1.5, 2.5), True, 1.5),
        (Estimate(5.1, 4.1, 6.4), True, 4.1),
        (Estimate(1.1, 0.9, 1.3), True, 1.0),
        (Estimate(0.5, 0.45, 0.55), True, 0.5),
        (Estimate(2.0, 0.4, 9.0), True, 0.4),
        (Estimate(0.5, 0.3, 0.9), True, 0.3),
        (Estimate(1780.0, 0.0, 1e6), True, 0.0),
    ],
)
def test_a_noisy_timing_earns_its_lower_bound_where_that_is_above_1(
    speedup: Estimate, noisy: bool, credit: float
) -> None:
    case = result(Status.PASSED, replace(TIMING, speedup=speedup, noisy=noisy))
    assert case.credit is not None and case.credit.value == credit and case.credit.high == speedup.high
    assert case.credit.low == min(case.credit.value, speedup.low)
    assert result(Status.IMPLAUSIBLE, TIMING).credit is None and result(Status.PASSED).credit is None


def test_a_timing_that_a_plausibility_check_left_undecided_earns_at_most_1() -> None:
    timing = replace(TIMING, speedup=Estimate(5.1, 4.1, 6.4), noisy=True, undecided="noise may explain it")
    credit = result(Status.PASSED, timing).credit
    assert credit is not None and (credit.value, credit.low) == (1.0, 1.0)


def test_the_fraction_of_the_roofline() -> None:
    assert TIMING.roofline_fraction == 0.25
    assert replace(TIMING, roofline_ms=None).roofline_fraction is None


def test_the_first_failure_is_the_status_and_heldout_is_a_result() -> None:
    passed = Verdict(Stage.COMPILE, Status.PASSED)
    wrong = Verdict(Stage.CORRECTNESS, Status.WRONG_RESULT)
    late = Verdict(Stage.PERFORMANCE, Status.IMPLAUSIBLE)
    unseen = Verdict(Stage.HELDOUT, Status.CRASH)
    assert evaluation().status is Status.NOT_RUN and evaluation().failure is None
    assert evaluation(passed, wrong, late).status is Status.WRONG_RESULT
    assert evaluation(passed, wrong, late).failure is wrong
    assert evaluation(passed, unseen).status is Status.PASSED and evaluation(passed, unseen).failure is None
    assert passed.passed and not wrong.passed
    assert [case.split for case in evaluation(passed).split(Split.HELDOUT)] == [Split.HELDOUT]


def test_a_mean_speedup_counts_what_was_timed_and_the_seen_one_needs_every_gate() -> None:
    half = replace(TIMING, speedup=Estimate(0.5, 0.5, 0.5))
    unseen = replace(result(Status.PASSED, half), split=Split.HELDOUT)
    doubtful = result(Status.IMPLAUSIBLE, replace(TIMING, speedup=Estimate(9.0, 9.0, 9.0)))
    timed = (result(Status.PASSED, TIMING), result(Status.PASSED, half), doubtful, result(Status.PASSED), unseen)
    good = replace(evaluation(Verdict(Stage.COMPILE, Status.PASSED)), cases=timed)
    assert good.mean_speedup(Split.SEEN) == pytest.approx(1.0) and good.mean_speedup(Split.HELDOUT) == 0.5
    assert good.seen_speedup == pytest.approx(1.0)
    failed = replace(good, verdicts=(Verdict(Stage.PERFORMANCE, Status.IMPLAUSIBLE),))
    assert failed.mean_speedup(Split.SEEN) == pytest.approx(1.0) and failed.seen_speedup is None
    bare = replace(good, cases=(result(Status.PASSED),))
    assert bare.mean_speedup(Split.SEEN) is None and bare.seen_speedup == 1.0


def test_the_slowest_regime_counts_where_it_is_slower_beyond_the_noise() -> None:
    def timed(case: str, regime: str, low: float, value: float, high: float) -> CaseResult:
        timing = replace(TIMING, speedup=Estimate(value, low, high))
        return replace(result(Status.PASSED, timing), case=case, regime=regime)

    usual, other = timed("seen-01", "", 3.9, 4.0, 4.1), timed("seen-02", "", 0.9, 1.0, 1.1)
    alike, slow = timed("seen-01.sparse", "sparse", 3.5, 3.8, 4.0), timed("seen-01.skewed", "skewed", 1.9, 2.0, 2.1)
    slowest = timed("seen-01.sorted", "sorted", 0.9, 1.0, 1.1)
    lost = replace(usual, candidate=Status.WRONG_RESULT, timing=None)
    assert counted((usual, alike, other)) == (usual, other)
    assert counted((usual, alike, slow, other)) == (slow, other)
    assert counted((usual, slow, slowest, other)) == (slowest, other)
    assert counted((lost, slow, other)) == (other,)
    noisy = timed("seen-01.noisy", "noisy", 1.2, 4.0, 13.0)
    assert noisy.timing is not None
    noisy = replace(noisy, timing=replace(noisy.timing, noisy=True))
    assert counted((usual, noisy, other)) == (noisy, other), "a wide interval excuses no regime"
    good = replace(evaluation(Verdict(Stage.COMPILE, Status.PASSED)), cases=(usual, slow, other))
    assert good.seen_speedup == pytest.approx(2**0.5)


def test_a_trial_says_what_its_evaluation_says() -> None:
    good = evaluation(Verdict(Stage.COMPILE, Status.PASSED))
    assert trial(Status.PASSED, good).key == ("noop", "a/b/c", 1)
    with pytest.raises(ValueError, match="trial says crash, its evaluation passed"):
        trial(Status.CRASH, good)


def test_planned_trials_are_every_combination_once() -> None:
    info = RunInfo(
        run="r",
        started_at="",
        environment=HERE,
        agents=("a", "b"),
        tasks=("t", "u"),
        attempts=2,
        config="",
        arena_version="0",
    )
    assert len(info.planned) == len(set(info.planned)) == 8
    assert info.planned[:4] == (("a", "t", 1), ("b", "t", 1), ("a", "u", 1), ("b", "u", 1))


def test_the_roofline_is_the_greater_of_its_two_bounds() -> None:
    assert GPU.roofline_ms(0, 5e9, "float16") == pytest.approx(1.0)
    assert GPU.roofline_ms(2e12, 5e9, "float16") == pytest.approx(2.0)
    assert GPU.roofline_ms(2e12, 50e9, "float16") == pytest.approx(10.0)


def test_float32_is_bounded_by_its_own_unit_or_by_three_shorter_products() -> None:
    assert GPU.roofline_ms(1e12, 1, "float32") == pytest.approx(6.0)
    assert GPU.roofline_ms(1e12, 1, "tf32") == pytest.approx(2.0)
    with_bfloat16 = replace(GPU, peak_tflops={"float32": 100.0, "tf32": 150.0, "bfloat16": 900.0})
    assert with_bfloat16.roofline_ms(3e11, 1, "float32") == pytest.approx(1.0)
    assert with_bfloat16.roofline_ms(3e11, 1, "tf32") == pytest.approx(1.0)
    vector_only = replace(GPU, peak_tflops={"float32": 100.0})
    assert vector_only.roofline_ms(1e12, 1, "float32") == pytest.approx(10.0)


def test_unknown_peaks_give_no_bound() -> None:
    bare = replace(GPU, peak_bandwidth_gbs=None, peak_tflops={})
    assert bare.roofline_ms(1e12, 1e9, "float16") is None
    assert replace(GPU, peak_bandwidth_gbs=None).roofline_ms(1e12, 1e9, "float8_e5m2") is None
    assert replace(GPU, peak_tflops={}).roofline_ms(1e12, 5e9, "float16") == pytest.approx(1.0)


def test_only_the_same_device_may_be_mixed() -> None:
    assert HERE.comparable_with(Environment(replace(GPU, driver="another"), "bubblewrap"))
    for other in (replace(GPU, platform="cuda"), replace(GPU, arch="gfx950"), replace(GPU, name="MI325X")):
        assert not HERE.comparable_with(Environment(other, "session"))
    assert not GPU.emulated and replace(GPU, platform="cpu").emulated


def test_every_status_has_a_docstring() -> None:
    import ast
    import inspect

    body = ast.parse(inspect.getsource(Status)).body[0]
    assert isinstance(body, ast.ClassDef)
    members = [place for place, node in enumerate(body.body) if isinstance(node, ast.Assign)]
    assert len(members) == len(Status)
    for place in members:
        assert isinstance(body.body[place + 1], ast.Expr), ast.unparse(body.body[place])

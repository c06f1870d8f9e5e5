"""Every measure against a hand-computed fixture, and on degenerate runs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.reports.groups import ALL, CURVE, LATENCY_BOUND, Group, group, groups
from arena.reports.intervals import Method, Quantity
from arena.reports.measures import MEASURES
from arena.reports.results import results_frame
from arena.reports.rows import trial_rows
from arena.reports.standings import standings
from arena.results.outcome import HeldoutOutcome, Outcome
from arena.results.record import AgentUsed, Estimate
from arena.results.verdict import Status
from arena.runs.records import RunRecords

from . import builders as b

BAD = Status.WRONG_RESULT
NOISY = (Estimate(3.945, 1.586, 9.81), Estimate(1.183, 1.047, 1.336))


def overall(run: RunRecords) -> Group:
    return groups(trial_rows([run]))[0]


def value(found: Group, name: str, *, best: bool = False) -> float:
    quantity = (found.best if best else found.mean)[name]
    assert isinstance(quantity, Quantity)
    return quantity.value


def mixed() -> RunRecords:
    """Five planned tasks: 4×, 1× with held-out losses, a wrong result, a compile error, and one without a record."""
    fast = [b.case("s1", 2.0), b.case("s2", 8.0), b.heldout("h1", 2.0, kind="edge"), b.heldout("h2", 2.0, kind="dtype")]
    same = [
        b.case("s1", 1.0),
        b.heldout("h1", 0.5, kind="edge"),
        b.heldout("h2", None, kind="edge", candidate=BAD),
        b.heldout("h3", None, kind="dtype", baseline=BAD, candidate=BAD),
        b.heldout("h4", 0.5, kind="dtype", baseline=BAD),
    ]
    trials = [
        b.trial("hip2hip/m/a", cases=fast),
        b.trial("hip2hip/m/b", cases=same),
        b.trial("hip2hip/m/c", BAD, [b.case("s1", None, candidate=BAD), b.case("s2", candidate=Status.NOT_RUN)]),
        b.trial("torch2hip/m/d", Status.COMPILE_ERROR),
    ]
    return b.run(trials, tasks=["hip2hip/m/a", "hip2hip/m/b", "hip2hip/m/c", "torch2hip/m/d", "torch2hip/m/e"])


def test_recorded_traffic_is_weighted_by_the_time_that_it_takes() -> None:
    """Of 4 ms in calls with the baseline, 1 ms is halved and 3 ms take a quarter; a share of the GPU's time is one."""
    calls = [b.case("s1", 2.0, baseline_ms=0.01, calls=100), b.case("s2", 4.0, baseline_ms=3.0, calls=1), b.case("s3")]
    shares = [b.case("s1", 2.0, gpu_share=10), b.case("s2", 4.0, gpu_share=30, baseline_ms=7.0), b.case("s3", 9.0)]
    for cases in (calls, shares):
        found = overall(b.run([b.trial("hip2hip/m/a", cases=cases)]))
        assert value(found, "served_speedup") == pytest.approx(4 / (1 / 2 + 3 / 4))
    quantity = found.mean["served_speedup"]
    assert quantity is not None and quantity.low is not None and quantity.low < quantity.value


def test_a_case_counts_as_its_slowest_regime_and_says_what_of_its_speed_is_left() -> None:
    cases = [b.case("s1", 4.0), b.case("s1", 2.0, regime="skewed"), b.case("s1", 3.0, regime="sparse"), b.case("s2", 8)]
    unseen = [b.heldout("h1", 2.0), replace(b.heldout("h1", 4.0), case="h1.skewed", regime="skewed")]
    found = overall(b.run([b.trial("hip2hip/m/a", cases=[*cases, *unseen])]))
    assert value(found, "gain") == pytest.approx(math.sqrt(2.0 * 8.0))
    assert value(found, "speedup_retention") == pytest.approx(2.0 / math.sqrt(2.0 * 8.0))
    assert value(found, "regime_retention") == pytest.approx(math.sqrt(2 / 4 * 4 / 2))
    assert overall(mixed()).mean["regime_retention"] is None


def test_noise_and_doubt_raise_no_retention() -> None:
    noisy = [b.case("s1", 4.0, noisy=True), b.case("s1", 2.0, regime="skewed")]
    found = overall(b.run([b.trial("hip2hip/m/a", cases=noisy)]))
    assert value(found, "regime_retention") == pytest.approx(2 / 4)
    doubted = b.heldout("h2", 0.2, candidate=Status.TIMING_MISMATCH)
    unseen = b.run([b.trial("hip2hip/m/a", cases=[b.case("s1", 2.0), b.heldout("h1", 2.0), doubted])])
    assert overall(unseen).mean["speedup_retention"] is None


def test_traffic_of_which_a_case_does_not_count_has_no_served_speedup() -> None:
    lost = b.heldout("h1", None, candidate=BAD)
    cases = [b.case("s1", 2.0, calls=5), replace(lost, calls=7)]
    noise = [b.case("s1", 2.0, calls=5, baseline_ms=0.0)]
    for found in (cases, noise, [b.case("s1", 2.0)]):
        assert overall(b.run([b.trial("hip2hip/m/a", cases=found)])).mean["served_speedup"] is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("compile_rate", 3 / 5),
        ("correctness_rate", 2 / 5),
        ("performance_rate", 2 / 5),
        ("solved_rate", 1 / 5),
        ("overfit_rate", 1 / 5),
        ("correctness_drop", 1 / 2),
        ("case_correctness_drop", 2 / 6),
        ("silent_failure", 2 / 6),
        ("refusal", 0),
        ("conditional_correctness", 3 / 4),
        ("mean_speedup", (4 + 1) / 2),
        ("gain", 4 ** (1 / 5)),
        ("fast_0", 2 / 5),
        ("fast_0.5", 2 / 5),
        ("fast_1", 1 / 5),
        ("fast_2", 1 / 5),
        ("fast_4", 0),
        ("speedup_retention", math.sqrt((2 / 4) * (0.5 / 1))),
        ("points", (520 + 220 + 20 + 0 + 0) / 5),
        ("reward", (3 - 2 - 2 - 5 - 7) / 5),
    ],
)
def test_by_hand(name: str, expected: float) -> None:
    assert value(overall(mixed()), name) == pytest.approx(expected)


def test_counts_and_outcomes_by_hand() -> None:
    found = overall(mixed())
    counts = found.counts
    assert (counts.tasks, counts.planned, counts.recorded, counts.missing) == (5, 5, 4, 1)
    assert (counts.compiled, counts.correct, counts.performed, counts.solved) == (3, 2, 2, 1)
    assert counts.outcomes == {Outcome.SOLVED: 1, Outcome.OVERFIT: 1, Outcome.FAILED: 2, Outcome.NO_VERDICT: 1}
    assert counts.statuses == {"passed": 1, "compile_error": 1, "wrong_result": 2, "missing": 1}
    assert [found.heldout_cases[outcome] for outcome in HeldoutOutcome] == [3, 1, 1, 1]


def test_drop_per_kind_by_hand() -> None:
    edge, dtype = overall(mixed()).kinds
    assert (edge.kind, edge.passed, edge.cases) == ("edge", 2, 3)
    assert edge.drop.value == pytest.approx(1 / 3)
    assert (dtype.kind, dtype.passed, dtype.cases) == ("dtype", 2, 3)
    assert dtype.drop.value == pytest.approx(1 / 3)


def test_groups_are_all_and_one_per_task_type() -> None:
    found = groups(trial_rows([mixed()]))
    assert [(g.task_type, g.counts.planned) for g in found] == [(ALL, 5), ("hip2hip", 3), ("torch2hip", 2)]
    assert value(found[2], "correctness_rate") == 0
    assert found[2].mean["mean_speedup"] is None
    assert value(found[2], "gain") == 1, "its users keep the baseline"


def test_mean_and_best_of_attempts() -> None:
    task = "hip2hip/m/a"
    trials = [
        b.trial(task, cases=[b.case("s1", 4.0), b.heldout(candidate=BAD, speedup=None)], attempt=1),
        b.trial(task, BAD, attempt=2),
        b.trial(task, cases=[b.case("s1", 1.0), b.heldout()], attempt=3),
    ]
    found = overall(b.run(trials, attempts=4))
    assert value(found, "correctness_rate") == 2 / 4
    assert value(found, "correctness_rate", best=True) == 1
    assert value(found, "mean_speedup") == 2.5
    assert value(found, "mean_speedup", best=True) == 4
    assert value(found, "gain") == value(found, "gain", best=True) == 1, "4× fails an unseen case, the other is 1×"
    assert value(found, "correctness_drop") == 1 / 2
    assert value(found, "correctness_drop", best=True) == 0
    assert value(found, "reward", best=True) == 0


def test_every_task_weighs_the_same_in_the_mean_speedup() -> None:
    trials = [
        b.trial("hip2hip/m/a", cases=[b.case("s1", 3.0)], attempt=1),
        b.trial("hip2hip/m/a", cases=[b.case("s1", 3.0)], attempt=2),
        b.trial("hip2hip/m/b", cases=[b.case("s1", 1.0)], attempt=1),
        b.trial("hip2hip/m/b", BAD, attempt=2),
    ]
    assert value(overall(b.run(trials, attempts=2)), "mean_speedup") == 2


def test_harness_errors_stay_in_the_denominator_and_are_counted() -> None:
    found = overall(b.run([b.trial("hip2hip/m/a", cases=[b.case()]), b.trial("hip2hip/m/b", Status.HARNESS_ERROR)]))
    assert found.counts.harness_errors == 1
    assert value(found, "correctness_rate") == 0.5


def test_pass_at_k_and_solved_at_k_by_hand() -> None:
    """Four attempts: two are correct at the first task, one of them on held-out cases too; none at the second."""
    broken = b.heldout(candidate=BAD, speedup=None)
    trials = [
        b.trial("hip2hip/m/a", cases=[b.case(), b.heldout()], attempt=1),
        b.trial("hip2hip/m/a", cases=[b.case(), broken], attempt=2),
        b.trial("hip2hip/m/a", BAD, attempt=3),
        *(b.trial("hip2hip/m/b", BAD, attempt=place) for place in (1, 2, 3, 4)),
    ]
    found = overall(b.run(trials, attempts=4))
    expected = {"pass_at_1": 1 / 4, "pass_at_2": 5 / 12, "pass_at_4": 1 / 2}
    expected |= {"solved_at_1": 1 / 8, "solved_at_2": 1 / 4, "solved_at_4": 1 / 2}
    assert {name: value(found, name) for name in found.mean if "_at_" in name} == pytest.approx(expected)


def test_bounded_reward_by_hand() -> None:
    """2.1× earns a half, 1× nothing, a failure nothing; without any timing there is none."""
    trials = [b.trial(f"hip2hip/m/{name}", cases=[b.case("s1", speed)]) for name, speed in (("a", 2.1), ("b", 1.0))]
    found = overall(b.run([*trials, b.trial("hip2hip/m/c", BAD)]))
    assert value(found, "bounded_reward") == pytest.approx(0.5 / 3)
    assert overall(b.run([b.trial("hip2hip/m/c", BAD)])).mean["bounded_reward"] is None


def test_relative_to_the_expert_by_hand() -> None:
    """1× and 6× against experts of 2× and 3×; a third task has no expert, a fourth has changed since."""
    speeds = {"a": (1.0, 2.0), "b": (6.0, 3.0), "c": (5.0, None), "d": (9.0, 1.0)}
    mine = [b.trial(f"hip2hip/m/{name}", cases=[b.case("s1", speed)]) for name, (speed, _) in speeds.items()]
    experts = b.run(
        [
            b.trial(
                f"hip2hip/m/{name}",
                BAD if speed is None else Status.PASSED,
                [b.case("s1", speed)] if speed else [],
                agent="expert",
                run="r2",
                task_hash="new" if name == "d" else "t0",
            )
            for name, (_, speed) in speeds.items()
        ],
        name="r2",
    )
    both = trial_rows([b.run(mine), experts])
    found, expert = (each for each in groups(both) if each.task_type == ALL)
    quantity = found.mean["relative_to_expert"]
    assert quantity is not None
    assert quantity.value == pytest.approx(math.sqrt(1 / 2 * 6 / 3))
    assert quantity.tasks == 2
    assert quantity.low is not None
    assert quantity.low <= quantity.value * math.exp(-0.02 * math.sqrt(4) / 2 * 0.99), "errors of four trials"
    assert expert.mean["relative_to_expert"] is None
    assert overall(b.run(mine)).mean["relative_to_expert"] is None
    shown = [
        list(results_frame(standings(rows, groups(rows)), emulated=False)) for rows in (both, trial_rows([b.run(mine)]))
    ]
    assert [shown[0].count("To the expert"), shown[1].count("To the expert")] == [1, 0], "no column without a value"
    named = replace(experts, info=replace(experts.info, used={"expert": AgentUsed("a program of its author's")}))
    assert groups(trial_rows([b.run(mine), named]))[0].mean["relative_to_expert"] is None, (
        "the name alone makes no expert"
    )


def test_roofline_and_sol_by_hand() -> None:
    """Candidates at 0.5 ms and 0.25 ms with a bound of 0.125 ms; a second, failed task."""
    cases = [b.case("s1", 2.0, roofline_ms=0.125), b.case("s2", 4.0, roofline_ms=0.125)]
    found = overall(b.run([b.trial("hip2hip/m/a", cases=cases), b.trial("hip2hip/m/b", BAD)]))
    assert value(found, "roofline_fraction") == pytest.approx(math.sqrt(0.25 * 0.5))
    scores = [1 / (1 + 0.375 / 0.875), 1 / (1 + 0.125 / 0.875)]
    assert value(found, "sol_score") == pytest.approx(sum(scores) / 2 / 2)


def test_no_roofline_without_peaks_and_none_on_the_cpu_platform() -> None:
    unknown = overall(b.run([b.trial(cases=[b.case()])]))
    emulated = overall(b.run([b.trial(cases=[b.case(roofline_ms=0.1)], env=b.environment(b.CPU))]))
    for found in (unknown, emulated):
        assert found.mean["roofline_fraction"] is None
        assert found.mean["sol_score"] is None


def test_held_out_measures_are_empty_where_held_out_was_not_run() -> None:
    found = overall(b.run([b.trial(cases=[b.case()])]))
    for name in ("solved_rate", "correctness_drop", "case_correctness_drop", "conditional_correctness"):
        assert found.mean[name] is None
    assert found.kinds == ()


def test_failing_today_is_no_small_drop() -> None:
    """Two of three trials are wrong on seen cases: the drop is over the third, and empty where there is none."""
    wrong = [b.trial(f"hip2hip/m/{name}", BAD, [b.case(candidate=BAD)]) for name in "ab"]
    broken = [b.heldout("h1"), b.heldout("h2", None, candidate=BAD)]
    found = overall(b.run([*wrong, b.trial("hip2hip/m/c", cases=[b.case(), *broken])]))
    for name, drop, count in (("correctness_drop", 1, 1), ("case_correctness_drop", 1 / 2, 2)):
        quantity = found.mean[name]
        assert quantity is not None
        assert (quantity.value, quantity.count) == (drop, count)
    nothing = overall(b.run(wrong))
    assert (nothing.mean["correctness_drop"], nothing.best["correctness_drop"]) == (None, None)
    assert (nothing.mean["case_correctness_drop"], nothing.kinds) == (None, ())
    assert value(nothing, "solved_rate") == 0


def test_a_trial_stopped_before_held_out_is_in_no_drop() -> None:
    stopped = b.trial("hip2hip/m/a", Status.IMPLAUSIBLE, [b.case("s1", candidate=Status.IMPLAUSIBLE)])
    found = overall(b.run([stopped, b.trial("hip2hip/m/b", cases=[b.case(), b.heldout()])]))
    assert value(found, "correctness_rate") == 1
    assert value(found, "solved_rate") == 0.5
    assert value(found, "correctness_drop") == 0


def test_a_candidate_that_hangs_does_not_shrink_its_denominator() -> None:
    hung = [b.heldout("h1"), b.heldout("h2", None, candidate=Status.TIMEOUT)]
    rest = [b.heldout(f"h{at}", None, baseline=Status.NOT_RUN, candidate=Status.NOT_RUN) for at in (3, 4)]
    found = overall(b.run([b.trial(cases=[b.case(), *hung, *rest])]))
    assert value(found, "conditional_correctness") == 1 / 4
    assert value(found, "case_correctness_drop") == 3 / 4


def test_nothing_planned() -> None:
    assert groups(trial_rows([b.run([], tasks=[], agents=["alpha"])])) == []
    empty = group("alpha", ALL, [])
    assert empty.curve == ()
    assert all(quantity is None for quantity in empty.mean.values())


def test_a_group_without_a_timed_trial_says_nothing_of_speed() -> None:
    """One trial is wrong, one correct but its timing invalid, one never ran."""
    invalid = b.trial("hip2hip/m/b", Status.IMPLAUSIBLE, [b.case("s1", candidate=Status.IMPLAUSIBLE)])
    trials = [b.trial("hip2hip/m/a", BAD), invalid]
    found = overall(b.run(trials, tasks=[f"hip2hip/m/{name}" for name in "abc"]))
    assert value(found, "gain") == 1
    for name in ("mean_speedup", "fast_0", "fast_1", "speedup_retention"):
        assert found.mean[name] is None
        assert found.best[name] is None
    assert found.curve == ()
    assert value(found, "correctness_rate") == 1 / 3
    one_timed = overall(b.run([*trials, b.trial("hip2hip/m/c", cases=[b.case("s1", 8.0)])]))
    assert value(one_timed, "gain") == pytest.approx(2), "the failed ones count as 1"


def test_planned_but_nothing_recorded() -> None:
    found = overall(b.run([], tasks=["hip2hip/m/a", "hip2hip/m/b"], agents=["alpha"]))
    assert found.counts.missing == 2
    assert {*found.mean.values(), *found.best.values()} == {None}
    assert found.curve == ()


def test_one_task() -> None:
    found = overall(b.simple([2.0]))
    speedup, rate = found.mean["mean_speedup"], found.mean["correctness_rate"]
    assert speedup is not None
    assert rate is not None
    trial = trial_rows([b.simple([2.0])])[0].speedup
    assert trial is not None
    assert (speedup.low, speedup.high) == pytest.approx((trial.low, trial.high), rel=1e-3)
    assert (speedup.method, rate.value, rate.method) == (Method.TIMING, 1, Method.WILSON)


def test_the_interval_of_a_group_holds_the_errors_of_its_trials() -> None:
    """Two trials of 3.945 and 1.183: errors of the logarithms 0.4648 and 0.0622, of their mean 0.2345."""
    cases = [replace(b.case(), timing=replace(b.timing(1.0), speedup=estimate)) for estimate in NOISY]
    trials = [b.trial(f"hip2hip/m/{name}", cases=[one]) for name, one in zip("ab", cases, strict=True)]
    found = overall(b.run(trials))
    geomean, mean = found.mean["gain"], found.mean["mean_speedup"]
    assert geomean is not None
    assert mean is not None
    assert geomean.low is not None
    assert geomean.high is not None
    assert mean.high is not None
    assert geomean.method is Method.BOOTSTRAP_AND_TIMING
    assert geomean.low <= geomean.value * math.exp(-1.96 * 0.2345) * 1.001
    assert geomean.high >= geomean.value * math.exp(1.96 * 0.2345) * 0.999
    assert mean.high >= mean.value * math.exp(1.96 * math.hypot(3.945 * 0.4648, 1.183 * 0.0622) / 5.128) * 0.999


def test_errors_of_attempts_add_up_in_quadrature() -> None:
    """Two attempts at one task, errors 0.4648 and 0.0622: that of their mean is 0.2345; the best has its own."""
    trials = [
        b.trial("hip2hip/m/a", cases=[replace(b.case(), timing=replace(b.timing(1.0), speedup=one))], attempt=place)
        for place, one in enumerate(NOISY, start=1)
    ]
    found = overall(b.run(trials, attempts=2))
    mean, best = found.mean["gain"], found.best["gain"]
    assert mean is not None
    assert best is not None
    assert mean.high == pytest.approx(mean.value * math.exp(1.96 * 0.2345), rel=1e-3)
    assert (best.value, best.high) == pytest.approx((3.945, 3.945 * math.exp(1.96 * 0.4648)), rel=1e-3)


def test_the_fast_p_curve_starts_at_fast_0_and_never_rises() -> None:
    found = overall(b.simple([0.4, 1.2, 2.5, None]))
    assert found.curve[0] == value(found, "fast_0") == 0.75
    assert found.curve[CURVE.index(1.0)] == value(found, "fast_1") == 0.5
    assert list(found.curve) == sorted(found.curve, reverse=True)
    assert found.curve[-1] == 0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(0.05, 20)), min_size=1, max_size=15))
def test_properties_that_hold_for_any_run(speedups: list[float | None]) -> None:
    found = overall(b.simple(speedups))
    passed = [speedup for speedup in speedups if speedup is not None]
    assert value(found, "correctness_rate") == pytest.approx(len(passed) / len(speedups))
    assert value(found, "correctness_drop") == 0 if passed else found.mean["correctness_drop"] is None
    if passed:
        assert value(found, "fast_0") >= value(found, "fast_1") >= value(found, "fast_4")
        sure = 1 / (1 - 0.02 * math.sqrt((1 + 0.07) / 2))  # faster than this, by the interval of two cases
        logs = [math.log(speedup) if speedup and speedup > sure else 0.0 for speedup in speedups]
        assert value(found, "gain") == pytest.approx(math.exp(sum(logs) / len(logs)))
        assert value(found, "mean_speedup") == pytest.approx(sum(passed) / len(passed))
        assert value(found, "speedup_retention") == pytest.approx(1)
    for measure in MEASURES:
        quantity = found.mean.get(measure.name)
        if quantity is not None and quantity.low is not None and quantity.high is not None:
            assert quantity.low <= quantity.value <= quantity.high
            assert not measure.proportion or (quantity.low >= 0 and quantity.high <= 1)


def test_speeds_of_tasks_bound_by_latency_are_a_group_of_their_own() -> None:
    """Two long tasks of 4× and 1×, and one of a few microseconds that is 9 times as fast, which says little."""
    trials = [
        b.trial(f"triton2triton/m/{name}", cases=[b.case("s1", speed)])
        for name, speed in zip("abc", (4.0, 1.0, 9.0), strict=True)
    ]
    run = b.run(trials)
    run = replace(run, info=replace(run.info, latency_bound=("triton2triton/m/c",)))
    found = {one.task_type: one for one in groups(trial_rows([run]))}
    assert list(found) == [ALL, "triton2triton", LATENCY_BOUND]
    for name in (ALL, "triton2triton"):
        assert value(found[name], "gain") == pytest.approx(2.0)
        assert value(found[name], "correctness_rate") == 1.0 and found[name].counts.planned == 3
    assert value(found[LATENCY_BOUND], "gain") == pytest.approx(9.0)


def test_a_noisy_case_counts_as_its_lower_bound_or_at_most_1() -> None:
    noisy = replace(b.case("s1", 4.0), timing=replace(b.timing(4.0), noisy=True, speedup=Estimate(4.0, 0.25, 9.0)))
    steady = b.case("s2", 4.0)
    (row,) = trial_rows([b.run([b.trial("triton2triton/m/a", cases=[noisy, steady])])])
    assert row.speedup is not None and row.speedup.value == pytest.approx(1.0)
    assert row.points == pytest.approx(20 + 100 + 100) and row.reward == pytest.approx(0.0)

"""Paired comparisons: the three conclusions, what is refused, and hand-computed tests."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arena.errors import UsageError
from arena.reports.compare import Conclusion, compare_agents, compare_runs
from arena.reports.tables import comparison_markdown
from arena.results.verdict import Status

from . import builders as b

TEN = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9]


def test_second_is_faster() -> None:
    found = compare_runs(b.simple(TEN), b.simple([1.5 * s for s in TEN], name="r2")).speed
    assert (found.finding, found.unit) == (Conclusion.SECOND, "task")
    assert found.speedup_ratio is not None
    assert found.latency_ratio is not None
    assert found.speedup_ratio.value == pytest.approx(1.5)
    assert found.latency_ratio.value == pytest.approx(1.5)
    assert found.p_value is not None and found.p_value < 1e-6
    assert "alpha (r2) is 1.500× as fast as alpha (r1)" in found.conclusion


def test_first_is_faster_and_the_factor_is_stated_the_right_way_round() -> None:
    found = compare_runs(b.simple([2 * s for s in TEN]), b.simple(TEN, name="r2")).speed
    assert found.finding is Conclusion.FIRST
    assert "alpha (r1) is 2.000× as fast as alpha (r2)" in found.conclusion


def test_no_difference_is_said_plainly() -> None:
    wobbly = [s * (1.02 if place % 2 else 0.98) for place, s in enumerate(TEN)]
    found = compare_runs(b.simple(TEN), b.simple(wobbly, name="r2"))
    assert found.speed.finding is Conclusion.NONE_SHOWN
    assert "no difference shown" in found.speed.conclusion
    assert "no difference shown" in found.seen.conclusion
    assert found.seen.p_value == 1


def test_identical_latencies_show_no_difference() -> None:
    found = compare_runs(b.simple(TEN), b.simple(TEN, name="r2")).speed
    assert (found.finding, found.p_value) == (Conclusion.NONE_SHOWN, 1)


def test_correctness_is_mcnemar_with_one_attempt() -> None:
    """Seven tasks only the second solves, none the other way round: p = 2 / 2^7."""
    first = b.simple([None] * 7 + [1.0] * 3)
    found = compare_runs(first, b.simple([1.0] * 10, name="r2")).seen
    assert (found.first_only, found.second_only) == (0, 7)
    assert found.p_value == pytest.approx(2 / 2**7)
    assert found.finding is Conclusion.SECOND
    assert found.difference is not None
    assert found.difference.value == pytest.approx(0.7)
    assert compare_runs(b.simple([1.0] * 10, name="r2"), first).seen.finding is Conclusion.FIRST


def test_few_discordant_tasks_show_nothing() -> None:
    found = compare_runs(b.simple([None] * 5 + [1.0] * 5), b.simple([1.0] * 10, name="r2")).seen
    assert found.p_value == pytest.approx(2 / 2**5)
    assert found.finding is Conclusion.NONE_SHOWN


def test_held_out_correctness_is_compared_too() -> None:
    tasks = [f"hip2hip/m/t{place}" for place in range(8)]
    broken = b.heldout(speedup=None, candidate=Status.WRONG_RESULT)
    good = b.run([b.trial(task, cases=[b.case(), b.heldout()]) for task in tasks])
    brittle = b.run([b.trial(task, cases=[b.case(), broken], run="r2") for task in tasks], name="r2")
    found = compare_runs(good, brittle)
    assert found.seen.finding is Conclusion.NONE_SHOWN
    assert found.solved.finding is Conclusion.FIRST


def test_latencies_of_two_devices_are_refused_but_correctness_is_compared() -> None:
    found = compare_runs(b.simple([None] * 7), b.simple([9.0] * 7, name="r2", env=b.environment(b.CPU)))
    assert found.speed.finding is Conclusion.NOT_COMPARED
    assert (found.speed.speedup_ratio, found.speed.latency_ratio, found.speed.p_value) == (None, None, None)
    assert found.cases == ()
    assert "different devices" in found.speed.conclusion
    assert found.seen.finding is Conclusion.SECOND
    assert found.emulated
    assert "latencies of an emulation" in comparison_markdown(found)


def test_few_tasks_pair_cases_instead_and_say_so() -> None:
    def one(name: str, factor: float) -> object:
        cases = [b.case(f"s{place}", (1 + place / 10) * factor) for place in range(8)]
        return b.run([b.trial("hip2hip/m/a", cases=cases, run=name)], name=name)

    first, second = one("r1", 1.0), one("r2", 2.0)
    found = compare_runs(first, second).speed  # type: ignore[arg-type]
    assert (found.unit, found.finding) == ("case", Conclusion.SECOND)
    assert "8 cases of these tasks only" in found.conclusion


@pytest.mark.parametrize(("second", "shown"), [([2.0, 2.1], True), ([1.1, 4.0], False)])
def test_interval_and_p_are_of_one_test(second: list[float], shown: bool) -> None:
    found = compare_runs(b.simple([1.0, 1.0]), b.simple(second, name="r2")).speed
    ratio = found.speedup_ratio
    assert ratio is not None and ratio.low is not None and ratio.high is not None and found.p_value is not None
    assert (found.p_value < 0.05) is (ratio.low > 1) is shown
    assert (found.finding is Conclusion.SECOND) is shown


def test_a_ratio_that_is_not_shown_says_whose_it_is() -> None:
    found = compare_runs(b.simple([2.0, 1.0]), b.simple([1.0, 1.1], name="r2")).speed
    assert found.finding is Conclusion.NONE_SHOWN
    assert "no difference shown (the speedups of alpha (r2) are 0.742 times those of alpha (r1), 95" in found.conclusion


def test_one_pair_shows_nothing() -> None:
    single = b.run([b.trial(cases=[b.case()])])
    other = b.run([b.trial(cases=[b.case("s1", 9.0)], run="r2")], name="r2")
    assert compare_runs(single, other).speed.finding is Conclusion.NONE_SHOWN


def test_nothing_in_common() -> None:
    one = b.run([b.trial("hip2hip/m/a", cases=[b.case()])])
    two = b.run([b.trial("hip2hip/m/b", cases=[b.case()], run="r2")], name="r2")
    found = compare_runs(one, two)
    assert found.tasks == ()
    assert found.speed.finding is Conclusion.NOT_COMPARED
    assert found.seen.difference is None
    assert "2 tasks are in one of the two only" in found.notes[0]


def test_a_changed_task_is_left_out_and_named() -> None:
    one = b.run([b.trial("hip2hip/m/a", cases=[b.case()])])
    two = b.run([b.trial("hip2hip/m/a", cases=[b.case()], run="r2", task_hash="other")], name="r2")
    found = compare_runs(one, two)
    assert found.tasks == ()
    assert "hip2hip/m/a" in found.notes[0]


def test_missing_trials_are_noted() -> None:
    one = b.run([b.trial("hip2hip/m/a", cases=[b.case()])], tasks=["hip2hip/m/a", "hip2hip/m/b"])
    two = b.simple([], name="r2")
    assert (
        compare_runs(one, b.run([], tasks=["hip2hip/m/a"], agents=["beta"], name="r2"))
        .notes[-1]
        .startswith("1 planned")
    )
    with pytest.raises(UsageError, match="name one: "):
        compare_runs(one, two)


def test_two_agents_of_one_run() -> None:
    trials = [
        b.trial(f"hip2hip/m/t{place}", cases=[b.case("s1", speedup)], agent=agent)
        for place in range(8)
        for agent, speedup in (("alpha", 1.0), ("beta", 2.0 + place / 10))
    ]
    run = b.run(trials)
    assert compare_agents(run, "alpha", "beta").speed.finding is Conclusion.SECOND
    for wrong in (("alpha", "gamma"), ("alpha", "alpha")):
        with pytest.raises(UsageError):
            compare_agents(run, *wrong)
    with pytest.raises(UsageError, match="alpha, beta"):
        compare_runs(run, run)


def test_the_error_of_a_pair_holds_the_errors_of_both_sides() -> None:
    """Four cases with errors of ±2 % on both sides: 0.02 × √2 a pair, and √((1 + 3 × 0.07) / 4) of it their mean."""
    cases = [b.case(f"s{place}", 2.0) for place in range(4)]
    one, two = (b.run([b.trial("hip2hip/m/a", cases=cases, run=name)], name=name) for name in ("r1", "r2"))
    found = compare_runs(one, two)
    pair, task = found.cases[0].speedup_ratio, found.tasks[0].speedup_ratio
    assert math.log(pair.high / pair.value) == pytest.approx(0.02 * math.sqrt(2), rel=1e-2)
    assert task is not None
    assert math.log(task.high / task.value) == pytest.approx(0.02 * math.sqrt(2) * math.sqrt(1.21 / 4), rel=1e-2)
    assert found.speed.speedup_ratio is not None
    assert found.speed.speedup_ratio.high is not None
    overall = math.log(found.speed.speedup_ratio.high / found.speed.speedup_ratio.value)
    student = 3.182 / 1.96  # the quantile of Student's t for four cases over the normal one
    assert overall == pytest.approx(math.log(task.high / task.value) * student, rel=0.05), "where cases are the unit"


def test_rendering_states_every_conclusion() -> None:
    found = compare_runs(b.simple(TEN), b.simple([2 * s for s in TEN], name="r2"))
    text = comparison_markdown(found)
    for result in (found.seen, found.solved, found.speed):
        assert result.conclusion in text
    assert "Ratios above 1 speak for the second." in text
    for heading in ("Seen, first", "Seen, second", "Solved, first", "Solved, second", "Speedup, second / first"):
        assert f"| {heading} |" in text
    assert text.count("\n| triton2triton/norm/") == len(TEN)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=6, max_size=12))
@example([(1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (1.0, 2.0), (2.0, 3.0), (3.0, 2.0)])
def test_swapping_the_sides_inverts_the_ratio(pairs: list[tuple[float, float]]) -> None:
    first, second = b.simple([one for one, _ in pairs]), b.simple([two for _, two in pairs], name="r2")
    there, back = compare_runs(first, second).speed, compare_runs(second, first).speed
    assert there.speedup_ratio is not None
    assert back.speedup_ratio is not None
    assert there.speedup_ratio.value * back.speedup_ratio.value == pytest.approx(1)
    assert there.p_value == pytest.approx(back.p_value)
    opposite = {Conclusion.FIRST: Conclusion.SECOND, Conclusion.SECOND: Conclusion.FIRST}
    assert back.finding is opposite.get(there.finding, there.finding)

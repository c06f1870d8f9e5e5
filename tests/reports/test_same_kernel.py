"""A kernel against itself in two simulated runs: `compare` shows a difference as rarely as it says.

Rounds are drawn as the judge times them and go through its estimates: noise of every pass, passes that are preempted,
a faster place in memory, another cost of reaching each worker, and a machine that is slower on the second day.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from arena.judge.performance import estimates
from arena.reports.compare import Conclusion, SpeedResult, compare_runs
from arena.results.record import CaseTiming, Estimate, Round
from arena.runs.records import RunRecords

from . import builders as b

SEED = 20_261_123
REPETITIONS = 100
CASES = 4
ROUNDS = 16
CALLS = 200
REACH_ERROR_S = 7e-6
"""of the difference between long and short passes of one worker, as on an H200 (docs/develop/measurement.md)"""
NOISE, PREEMPTED, PLACE = 0.02, 0.05, 0.01


def timed_case(rng: np.random.Generator, call_s: float, faster: float, reach_s: tuple[float, float]) -> CaseTiming:
    """One case of a kernel that is `faster` times as fast as the baseline, whose calls take `call_s`."""

    def passes(one_call_s: float, reach: float) -> tuple[float, float]:
        noise = np.exp(NOISE * rng.standard_normal(2)) * np.where(rng.random(2) < PREEMPTED, 1.3, 1.0)
        return 1e-4 + 10 * one_call_s * noise[0], 1e-4 + reach + (10 + CALLS) * one_call_s * noise[1]

    rounds = []
    for place in range(ROUNDS):
        swapped = place % 2 == 1
        tilt = 1 + (PLACE if swapped else -PLACE)
        baseline, candidate = passes(call_s * tilt, reach_s[0]), passes(call_s / faster / tilt, reach_s[1])
        rounds.append(Round(baseline[0], candidate[0], baseline[1], candidate[1], swapped=swapped))
    candidate_ms = b.estimate(1e3 * float(np.median(estimates.candidate_slopes(rounds, CALLS))))
    return replace(b.timing(1.0), candidate_ms=candidate_ms, speedup=estimates.speedup(rounds, CALLS, REACH_ERROR_S))


def simulated(rng: np.random.Generator, name: str, tasks: int, *, slower: float, faster: float = 1.0) -> RunRecords:
    """A run of one agent on a machine that is `slower` today; each trial has two workers of its own."""
    trials = []
    for task in range(tasks):
        reach = REACH_ERROR_S * rng.standard_normal(2)
        cases = [
            replace(b.case(f"s{at}"), timing=timed_case(rng, slower * 4e-5 * (1 + at), faster, (reach[0], reach[1])))
            for at in range(CASES)
        ]
        trials.append(b.trial(f"triton2triton/norm/t{task}", cases=cases, run=name))
    return b.run(trials, name=name)


def compared(tasks: int, repetitions: int, faster: float = 1.0) -> list[SpeedResult]:
    rng = np.random.default_rng(SEED)
    return [
        compare_runs(
            simulated(rng, "r1", tasks, slower=1.0), simulated(rng, "r2", tasks, slower=1.4, faster=faster)
        ).speed
        for _ in range(repetitions)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("tasks", "unit"), [(3, "case"), (8, "task")])
def test_a_kernel_is_as_fast_as_itself(tasks: int, unit: str) -> None:
    found = compared(tasks, REPETITIONS)
    shown = sum(one.finding is not Conclusion.NONE_SHOWN for one in found)
    sys.stdout.write(f"seed {SEED}, {tasks} tasks: a difference in {shown} of {REPETITIONS}\n")
    assert shown <= 5
    assert {one.unit for one in found} == {unit}
    latencies = [one.latency_ratio.value for one in found if one.latency_ratio]
    assert max(latencies) < 0.8, "latencies alone would call the second run slower each time"


def test_a_kernel_that_is_faster_is_found() -> None:
    found = compared(8, 10, faster=1.05)
    assert all(one.finding is Conclusion.SECOND for one in found)
    ratios = [one.speedup_ratio for one in found]
    assert all(one and one.low and one.high and one.low <= 1.05 <= one.high for one in ratios)


def test_a_difference_within_the_errors_of_the_timings_is_none() -> None:
    """Ten tasks, 1.2 to 1.4 times as fast, each with an interval of a factor of 20: that error counts."""

    def run(name: str, speedup: float) -> RunRecords:
        trials = []
        for place in range(10):
            value = speedup * (1 + 0.02 * place) if speedup > 1 else speedup
            timing = replace(b.timing(1.0), speedup=Estimate(value, value / 20, value * 20))
            trials.append(b.trial(f"hip2hip/m/t{place}", cases=[replace(b.case(), timing=timing)], run=name))
        return b.run(trials, name=name)

    found = compare_runs(run("r1", 1.0), run("r2", 1.2)).speed
    assert found.p_value is not None and found.p_value > 0.05
    assert found.finding is Conclusion.NONE_SHOWN

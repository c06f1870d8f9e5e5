"""Rounds end when the interval is narrow: it must hold the truth all the same, whatever a candidate does about it.

A candidate chooses its own variance, from round to round and by what it has seen of its own times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from arena.judge.performance import estimates
from arena.results.record import Round

CALLS = 70
NARROW = 0.02
MOST = 128
LATENCY_S = 1e-5
MACHINES = 200
Deviation = Callable[[Sequence[float]], float]
"""standard deviation of the next logarithm of a latency, by all that came before"""

STRATEGIES: dict[str, Deviation] = {
    "steady": lambda _: 0.003,
    "noisy": lambda _: 0.01,
    "noisy-until-it-is-fast": lambda past: 0.0005 if len(past) > 2 and np.median(past) < 0 else 0.03,
    "silent-after-luck": lambda past: 1e-5 if past and past[-1] < -0.01 else 0.02,
    "quiet-in-the-first-place": lambda past: 0.0003 if len(past) < estimates.ROUNDS_OF_A_LOOK // 2 else 0.05,
    "noisy-at-the-beginning": lambda past: 0.05 if len(past) < 3 else 0.0003,
    "every-other-round": lambda past: 0.05 if len(past) % 2 else 0.0005,
    "every-eighth-round": lambda past: 0.1 if len(past) % 8 == 7 else 0.003,
}


def measured(deviation: Deviation, seed: int) -> list[Round]:
    """The rounds of a kernel as fast as its baseline, which end as the judge's do; the sides change places."""
    past: list[float] = []
    generator = np.random.default_rng(seed)

    def another(*, swapped: bool) -> Round:
        past.append(float(generator.normal()) * deviation(past))
        baseline_s = LATENCY_S * np.exp(generator.normal() * 0.001)
        candidate_s = LATENCY_S * np.exp(past[-1])
        return replace(Round(10 * baseline_s, 10 * candidate_s, 80 * baseline_s, 80 * candidate_s), swapped=swapped)

    rounds: list[Round] = []
    places = [False, True]
    while not rounds or (estimates.speedup(rounds, CALLS).half_width >= NARROW and len(rounds) < MOST):
        rounds += [another(swapped=swapped) for swapped in places for _ in range(estimates.ROUNDS_OF_A_LOOK // 2)]
        places.reverse()
    return rounds


@pytest.mark.slow(but=["silent-after-luck"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_interval_holds_the_truth_however_rounds_end(strategy: str) -> None:
    found = [estimates.speedup(measured(STRATEGIES[strategy], seed), CALLS) for seed in range(MACHINES)]
    assert sum(one.low <= 1 <= one.high for one in found) >= 0.95 * MACHINES


def test_the_errors_of_all_looks_sum_to_that_of_one_interval() -> None:
    assert estimates._tail(estimates.ROUNDS_OF_A_LOOK) == pytest.approx(0.025 * 0.8)
    looks = (estimates._tail(estimates.ROUNDS_OF_A_LOOK * look) for look in range(1, 10_000))
    assert sum(looks) == pytest.approx(0.025, rel=1e-3)

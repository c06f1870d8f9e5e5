"""A machine made noisier on purpose does not raise a score in expectation, whatever the shape of its noise.

Rounds of a case are drawn, its interval is Student's over their logarithms, and a timing whose interval stays wide is
noisy, as in `arena.judge`. Everything behind it is the real code: the credit, the mean over cases, the gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student

from arena.reports.rows import combine
from arena.results.order import gained
from arena.results.outcome import Outcome
from arena.results.record import CaseTiming, Estimate
from tests.reports import builders as b

SEED, TRIALS, ROUNDS, CASES = 20_261_128, 10_000, 8, 3
WIDE = 0.05
"""half of an interval, relative, from which a timing is noisy"""
STUDENT = float(student.ppf(0.975, ROUNDS - 1))
Draw = Callable[[np.random.Generator, float], NDArray[np.float64]]
TIMING = b.timing(1.0)


def normal(rng: np.random.Generator, scale: float) -> NDArray[np.float64]:
    return scale * rng.standard_normal((CASES, ROUNDS))


def heavy(rng: np.random.Generator, scale: float) -> NDArray[np.float64]:
    """A few rounds are far off."""
    return scale * rng.standard_t(2, (CASES, ROUNDS))


def adversarial(rng: np.random.Generator, scale: float) -> NDArray[np.float64]:
    """A process beside it makes whole cases noisy or quiet at will: half of them by ten times as much."""
    return scale * rng.choice([0.2, 2.0], (CASES, 1)) * rng.standard_normal((CASES, ROUNDS))


def baseline_slowed(rng: np.random.Generator, scale: float) -> NDArray[np.float64]:
    """Rounds are off to either side by all or nothing, as where a load comes and goes, with a mean of 0."""
    return scale * rng.choice([-0.5, -0.5, -0.5, 1.5], (CASES, ROUNDS))


def timed(logs: NDArray[np.float64]) -> CaseTiming:
    middle = float(logs.mean())
    half = STUDENT * float(logs.std(ddof=1)) / math.sqrt(ROUNDS)
    estimate = Estimate(math.exp(middle), math.exp(middle - half), math.exp(middle + half))
    return replace(TIMING, speedup=estimate, noisy=estimate.half_width > WIDE)


def scores(draw: Draw, scale: float, truth: float, trials: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Logarithms of the speedup and of the gain of many trials of one kernel."""
    rng = np.random.default_rng(SEED)
    speedups, gains = [], []
    for _ in range(trials):
        speedup = combine(timed(math.log(truth) + case).credit for case in draw(rng, scale))
        gain = gained(Outcome.SOLVED, speedup)
        assert speedup is not None
        speedups.append(math.log(speedup.value))
        gains.append(math.log(gain.value) if gain else 0.0)
    return np.array(speedups), np.array(gains)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [normal, heavy, adversarial, baseline_slowed])
@pytest.mark.parametrize("truth", [0.8, 1.0, 1.1, 2.0])
def test_noise_does_not_raise_a_score(draw: Draw, truth: float) -> None:
    """In 10,000 trials at each level of noise. At a truth of 1 no score that can rise at all stays at 1 exactly.

    There a gain needs an interval above 1 by chance, one in 40 or less, and is worth a thousandth at most.
    """
    for scale in (0.05, 0.2, 0.8):
        speedups, gains = scores(draw, scale, truth, TRIALS // 3)
        error = 3 * float(speedups.std()) / math.sqrt(len(speedups))
        assert float(speedups.mean()) <= math.log(truth) + error, scale
        error = 3 * float(gains.std()) / math.sqrt(len(gains))
        assert float(gains.mean()) <= max(0.0, math.log(truth)) + error + 1e-3, scale


def test_a_noisy_kernel_that_is_surely_faster_keeps_most_of_it() -> None:
    speedups, gains = scores(normal, 0.2, 3.0, 50)
    assert 0.7 * math.log(3.0) < float(gains.mean()) < math.log(3.0)
    assert float(gains.mean()) == pytest.approx(float(speedups.mean()))

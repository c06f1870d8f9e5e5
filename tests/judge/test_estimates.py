"""Latencies and speedups from rounds whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from arena.judge.performance import estimates
from arena.results.record import CaseTiming, Estimate, Mode, Round

CONSTANT_S = 1e-4


def rounds(
    baseline_s: float,
    candidate_s: float,
    count: int,
    *,
    noise_s: float = 0.0,
    swapped: bool = False,
    seed: int = 0,
) -> list[Round]:
    """Rounds of passes over 10 and 80 calls, each with the same constant cost and some noise."""
    generator = np.random.default_rng(seed)

    def took(calls: int, each_s: float) -> float:
        return (
            CONSTANT_S + calls * each_s + abs(generator.normal(0.0, noise_s))
            if noise_s
            else CONSTANT_S + calls * each_s
        )

    return [
        Round(took(10, baseline_s), took(10, candidate_s), took(80, baseline_s), took(80, candidate_s), swapped=swapped)
        for _ in range(count)
    ]


def test_the_constant_cost_of_a_pass_cancels() -> None:
    measured = rounds(2e-5, 1e-5, 4)
    assert estimates.latency_ms(estimates.baseline_slopes(measured, 70)).value == pytest.approx(0.02)
    assert estimates.latency_ms(estimates.candidate_slopes(measured, 70)).value == pytest.approx(0.01)
    assert estimates.speedup(measured, 70).value == pytest.approx(2.0)


def test_the_interval_holds_the_truth_and_narrows() -> None:
    few = estimates.speedup(rounds(2e-5, 1e-5, 6, noise_s=2e-5), 70)
    many = estimates.speedup(rounds(2e-5, 1e-5, 200, noise_s=2e-5), 70)
    assert few.low <= 2.0 <= few.high
    assert many.low <= 2.0 <= many.high
    assert many.half_width < few.half_width / 2


def test_one_preempted_pass_does_not_move_the_estimate() -> None:
    measured = rounds(1e-5, 1e-5, 9)
    hit = measured[4]
    measured[4] = Round(hit.baseline_short_s, hit.candidate_short_s, hit.baseline_long_s + 1.0, hit.candidate_long_s)
    assert estimates.speedup(measured, 70).value == pytest.approx(1.0)


def test_one_preempted_pass_does_not_decide_the_interval() -> None:
    measured = rounds(1e-5, 1e-5, 8, noise_s=1e-6)
    quiet = estimates.speedup(measured, 70).half_width
    hit = measured[4]
    measured[4] = Round(hit.baseline_short_s, hit.candidate_short_s, hit.baseline_long_s + 1.0, hit.candidate_long_s)
    assert quiet < estimates.speedup(measured, 70).half_width < 4 * quiet


@pytest.mark.slow(but=["[4]"])
@pytest.mark.parametrize("each_place", [4, 16])
def test_nineteen_of_twenty_intervals_hold_the_truth(each_place: int) -> None:
    """Of few rounds too, in two places of unlike speed; and they are at most three times as wide as they must be."""
    found = []
    for seed in range(400):
        straight = rounds(1.5e-5, 1e-5, each_place, noise_s=3e-5, seed=seed)
        crossed = rounds(1e-5, 1.5e-5, each_place, noise_s=3e-5, swapped=True, seed=1000 + seed)
        found.append(estimates.speedup(straight + crossed, 70))
    assert sum(one.low <= 1.0 <= one.high for one in found) >= 0.95 * 400
    needed = 1.96 * float(np.std([np.log(one.value) for one in found]))
    assert np.median([one.half_width for one in found]) < 3 * needed


def test_what_no_number_of_rounds_shows_is_in_the_interval() -> None:
    """Both sides are off by as much, on their own: a passes' difference of 70 calls takes 0.7 and 1.4 ms here."""
    found = estimates.speedup(rounds(1e-5, 2e-5, 200), 70, reach_error_s=7e-6)
    assert found.half_width == pytest.approx(1.96 * 7e-6 * np.hypot(1 / 0.7e-3, 1 / 1.4e-3), rel=1e-2)


def test_one_worker_differs_from_another_by_a_part_of_its_latency() -> None:
    """However many rounds and however long the calls: both sides add 3 % each."""
    found = estimates.speedup(rounds(1e-1, 2e-1, 200), 1, reach_error_s=8e-6, latency_error=0.03)
    assert found.half_width == pytest.approx(1.96 * 0.03 * np.sqrt(2), rel=2e-2)


def test_a_single_round_has_no_spread() -> None:
    assert estimates.speedup(rounds(2e-5, 1e-5, 1), 70).half_width == 0


def test_places_of_different_speed_cancel() -> None:
    """Half of the rounds the baseline lies in the slow place, half of them the candidate."""
    straight = rounds(1.5e-5, 1e-5, 6)
    crossed = rounds(1e-5, 1.5e-5, 6, swapped=True)
    assert estimates.speedup(straight, 70).value == pytest.approx(1.5)
    assert estimates.speedup(straight + crossed, 70).value == pytest.approx(1.0)


def test_data_that_varies_from_round_to_round_cancels() -> None:
    measured = [one for scale in (1, 5, 2, 9, 3, 7, 4) for one in rounds(2e-6 * scale, 1e-6 * scale, 1)]
    found = estimates.speedup(measured, 70)
    assert found.value == pytest.approx(2.0)
    assert found.half_width < 1e-9


def credit(measured: list[Round]) -> float:
    """What a score counts, where a half width of 2 % is noisy."""
    one = Estimate(1.0, 1.0, 1.0)
    ratio = estimates.speedup(measured, 70)
    noisy = ratio.half_width > 0.02 or not estimates.measured(measured, 70)
    return CaseTiming(one, one, ratio, Mode.GRAPH, 10, 80, "evicted", tuple(measured), noisy=noisy).credit.value


@pytest.mark.slow(but=["both-1e-05-0.3", "candidate-0.001-1.0"])
@pytest.mark.parametrize("true", [0.3, 0.7, 1.0, 1.5])
@pytest.mark.parametrize("noise_s", [1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("whose", ["both", "candidate"])
def test_noise_never_raises_the_credit(true: float, noise_s: float, whose: str) -> None:
    """On average over 200 machines, of which each is noisy by up to a hundred times what is measured."""
    earned = []
    for seed in range(200):
        measured = rounds(2e-5, 2e-5 / true, 12, noise_s=noise_s, seed=seed)
        if whose == "candidate":
            quiet = rounds(2e-5, 2e-5 / true, 12)
            measured = [
                replace(one, baseline_short_s=calm.baseline_short_s, baseline_long_s=calm.baseline_long_s)
                for one, calm in zip(measured, quiet, strict=True)
            ]
        earned.append(credit(measured))
    assert np.mean(earned) <= true * 1.01


def test_what_noise_hides_earns_no_more_than_is_sure() -> None:
    """Short passes longer than long ones: a latency below 0, which once was a speedup of 1,780."""
    upside_down = [replace(one, candidate_short_s=one.candidate_long_s + 1e-3) for one in rounds(2e-5, 4e-5, 8)]
    assert not estimates.measured(upside_down, 70)
    assert credit(upside_down) <= 0.5


@pytest.mark.parametrize("candidate_s", [0.0, -1e-4])
def test_no_time_at_all_is_taken_for_half_a_microsecond(candidate_s: float) -> None:
    assert estimates.speedup(rounds(1e-5, candidate_s, 4), 70).value == pytest.approx(20.0)

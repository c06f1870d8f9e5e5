"""From raw rounds to a latency, a speedup and their intervals. Pure numbers: no device, no process.

A pass of n calls takes a + n·t; a, the cost of reaching the worker and back, cancels in the slope between two lengths:
t = (T(long) - T(short)) / (long - short). The further apart the lengths, the less noise is left in t. Medians over
rounds resist preemption.

A speedup's interval is Student's, with winsorised deviations (Tukey and McLaughlin, 1963). It holds whenever the rounds
end, and includes what no number of rounds shows: a differs a little between long and short passes, and from one pair of
workers to the next. docs/develop/measurement.md says how often it covers the truth of a kernel against itself.
Latencies, which plausibility checks use and nobody may widen on purpose, have percentile bootstraps over whole rounds
(Efron, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from arena.results.record import Estimate, Round

RESAMPLES = 1000
ROUNDS_OF_A_LOOK = 8
"""over all placements, after which it is asked, each time, whether the interval is narrow enough

With fewer, a candidate that counts its calls could be done before it begins to cheat.
"""
_CONFIDENCE = 0.95
_TAIL = (1 - _CONFIDENCE) / 2
_FIRST = 0.8
_NORMAL_QUANTILE = 1.96
_OF_MEDIAN = math.pi / 2
"""the variance of a median over that of a mean, for many normal values"""
_SIGMA = 1.4826
"""a standard deviation over a median absolute deviation, for normal values"""
_CLIPPED_AT = 4.0
_LEAST_S = 5e-7  # no device makes a call in less: what is below, or negative, is noise, and no speedup of a billion

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def slopes(short_s: Sequence[float], long_s: Sequence[float], calls: int) -> Array:
    """Seconds per call of each round, from passes that differ by `calls` calls."""
    difference: Array = (np.asarray(long_s) - np.asarray(short_s)) / calls
    return difference


def baseline_slopes(rounds: Sequence[Round], calls: int) -> Array:
    """Seconds per call of the baseline, a value a round."""
    return slopes([r.baseline_short_s for r in rounds], [r.baseline_long_s for r in rounds], calls)


def candidate_slopes(rounds: Sequence[Round], calls: int) -> Array:
    """Seconds per call of the candidate, a value a round."""
    return slopes([r.candidate_short_s for r in rounds], [r.candidate_long_s for r in rounds], calls)


def latency_ms(values_s: Array, swapped: Sequence[bool] = ()) -> Estimate:
    """Median of per-round seconds as milliseconds, with its interval; the mean of both placements' medians."""
    return _combined(values_s * 1e3, swapped)


def speedup(rounds: Sequence[Round], calls: int, reach_error_s: float = 0.0, latency_error: float = 0.0) -> Estimate:
    """Median of the rounds' ratios: both sides saw the same data in a round, so that ragged data cancels.

    Where the sides changed places, the geometric mean of both placements' medians, in which the places cancel: a
    crossover design. `reach_error_s`: by how much reaching one worker differs between long and short passes.
    `latency_error`: by which part of a latency one worker differs from another. Both are standard deviations over
    workers, which no number of rounds with the same two workers shows.
    """
    parts = by_place(*_log_ratios(rounds, calls))
    value, half = _student(parts, _tail(len(rounds)))
    sides = (baseline_slopes(rounds, calls), candidate_slopes(rounds, calls))
    spans_s = [max(float(np.median(side)), _LEAST_S) * calls for side in sides]
    errors = [math.hypot(reach_error_s / span_s, latency_error) for span_s in spans_s]
    half = math.hypot(half, _NORMAL_QUANTILE * math.hypot(*errors))
    low = math.exp(value - half)
    if not measured(rounds, calls):
        low = min(low, _surely(rounds, calls))
    return Estimate(math.exp(value), low, math.exp(value + half))


def _tail(count: int) -> float:
    """Error on each side of an interval after `count` rounds.

    Whether to stop is asked every `ROUNDS_OF_A_LOOK` of them. Most cases end at the first look, which has `_FIRST` of
    the error; the k-th after it has a share of 6/(π k)² in the rest. All shares sum to 1, so that all intervals hold
    together whatever made the rounds end (Bonferroni's inequality).
    """
    later = count // ROUNDS_OF_A_LOOK - 1
    share = _FIRST if later < 1 else (1 - _FIRST) * 6 / (math.pi * later) ** 2
    return _TAIL * share


def _surely(rounds: Sequence[Round], calls: int) -> float:
    """The speedup that noise larger than the latencies leaves: a call takes no longer than its pass."""
    baseline = _combined(baseline_slopes(rounds, calls), placements(rounds))
    most_s = float(np.median([r.candidate_long_s for r in rounds])) / calls
    return max(baseline.low, _LEAST_S) / max(most_s, _LEAST_S)


def measured(rounds: Sequence[Round], calls: int) -> bool:
    """Return whether both latencies are surely above 0: where one is not, noise is larger than what is measured."""
    both = (baseline_slopes(rounds, calls), candidate_slopes(rounds, calls))
    if min(map(np.min, both)) > 0:  # no need to resample what is never below
        return True
    swapped = placements(rounds)
    return all(_combined(slopes, swapped).low > 0 for slopes in both)


def _log_ratios(rounds: Sequence[Round], calls: int) -> tuple[Array, list[bool]]:
    baseline_s, candidate_s = baseline_slopes(rounds, calls), candidate_slopes(rounds, calls)
    logs: Array = np.log(np.maximum(baseline_s, _LEAST_S) / np.maximum(candidate_s, _LEAST_S))
    return logs, placements(rounds)


def placements(rounds: Sequence[Round]) -> list[bool]:
    """Return in which of both placements each round was: whether the sides had changed buffers."""
    return [measured.swapped for measured in rounds]


def typical(values: Array, swapped: Sequence[bool]) -> float:
    """The mean of both placements' medians: what a speedup is made of, and whoever decides one of them moves it."""
    return float(np.mean([np.median(part) for part in by_place(values, swapped)]))


def by_place(values: Array, swapped: Sequence[bool]) -> list[Array]:
    """The values of each placement that there is."""
    mask = np.asarray(swapped if len(swapped) else [False] * len(values))
    return [values[mask == place] for place in (False, True) if (mask == place).any()]


def _student(parts: Sequence[Array], tail: float) -> tuple[float, float]:
    """Mean of the parts' medians, and half of its interval: 0 where no part has two values.

    Each placement has a variance of its own, with degrees of freedom after Welch and Satterthwaite (1946): a candidate
    sees where its buffers lie. Deviations beyond four standard deviations count as four, so that one preempted round
    does not decide.
    """
    from scipy.special import stdtrit

    value = float(np.mean([np.median(part) for part in parts]))
    several = [part for part in parts if len(part) > 1]
    squared = np.array([_OF_MEDIAN * _variance(part) / len(part) for part in several])
    total = float(squared.sum())
    if not total:
        return value, 0.0
    freedom = total**2 / float(np.sum(squared**2 / np.array([len(part) - 1 for part in several])))
    return value, float(stdtrit(freedom, 1 - tail)) * math.sqrt(total) / len(several)


def _variance(part: Array) -> float:
    """Around the median, with winsorised deviations."""
    deviations = part - np.median(part)
    limit = _CLIPPED_AT * _SIGMA * float(np.median(np.abs(deviations)))
    clipped = np.clip(deviations, -limit, limit) if limit else deviations
    return float(np.sum(clipped**2)) / (len(part) - 1)


def _combined(values: Array, swapped: Sequence[bool]) -> Estimate:
    """Mean over placements of the median over rounds; resampled within each placement."""
    parts = by_place(values, swapped)
    value = typical(values, swapped)
    resampled = np.mean([np.median(part[_resamples(len(part))], axis=1) for part in parts], axis=0)
    low, high = np.quantile(resampled, [_TAIL, 1 - _TAIL])
    return Estimate(value, min(float(low), value), max(float(high), value))


def _resamples(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.random.default_rng(count).integers(0, count, size=(RESAMPLES, count))

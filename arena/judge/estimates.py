"""From raw rounds to a latency, a speedup and their intervals. Pure numbers: no device, no process.

A pass of n calls takes a + n·t; a, the cost of reaching the host and back, cancels in the slope between two lengths:
t = (T(long) - T(short)) / (long - short). The further apart the lengths, the less noise is left in t. Medians over
rounds resist preemption; intervals are percentile bootstraps over whole rounds (Efron, 1979), which keeps the pairing
of baseline and candidate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arena.model.record import Estimate, Round

RESAMPLES = 1000
_CONFIDENCE = 0.95
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


def speedup(rounds: Sequence[Round], calls: int) -> Estimate:
    """Median of the rounds' ratios: both sides saw the same data in a round, so that ragged data cancels.

    Where the sides changed places, the geometric mean of both placements' medians, in which the places cancel: a
    crossover design.
    """
    baseline_s, candidate_s = baseline_slopes(rounds, calls), candidate_slopes(rounds, calls)
    logs = np.log(np.maximum(baseline_s, _LEAST_S) / np.maximum(candidate_s, _LEAST_S))
    combined = _combined(logs, [r.swapped for r in rounds])
    return Estimate(*(float(np.exp(value)) for value in (combined.value, combined.low, combined.high)))


def _combined(values: Array, swapped: Sequence[bool]) -> Estimate:
    """Mean over placements of the median over rounds; resampled within each placement."""
    mask = np.asarray(swapped if len(swapped) else [False] * len(values))
    parts = [values[mask == place] for place in (False, True) if (mask == place).any()]
    value = float(np.mean([np.median(part) for part in parts]))
    resampled = np.mean([np.median(part[_resamples(len(part))], axis=1) for part in parts], axis=0)
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return Estimate(value, min(float(low), value), max(float(high), value))


def _resamples(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.random.default_rng(count).integers(0, count, size=(RESAMPLES, count))

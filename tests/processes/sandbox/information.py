"""Mutual information between what was left and what was read, in bits. `exchange.py` uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SHUFFLES = 200
_PHASES = (0.0, 0.25, 0.5, 0.75)
_SURE = 4.0
"""standard deviations above the shuffled mean from which on an estimate counts"""


class Information(NamedTuple):
    """`bits` of an exchange; `control` is the mean estimate of shuffled pairs; `passes`: whether more than chance."""

    bits: float
    control: float
    passes: bool


def entropy(counts: NDArray[np.int64]) -> float:
    """Return the entropy in bits of cells with these counts, corrected for bias (Miller 1955, Madow)."""
    seen = counts[counts > 0]
    shares = seen / seen.sum()
    return float(-(shares * np.log2(shares)).sum() + (len(seen) - 1) / (2 * seen.sum() * np.log(2)))


def mutual(left: NDArray[np.int64], read: NDArray[np.int64]) -> float:
    """Return the mutual information in bits of pairs, from entropies with the correction."""
    joint = np.zeros((left.max() + 1, read.max() + 1), dtype=np.int64)
    np.add.at(joint, (left, read), 1)
    return entropy(joint.sum(1)) + entropy(joint.sum(0)) - entropy(joint.ravel())


def binned(values: NDArray[np.float64], levels: int, cyclic: bool) -> list[NDArray[np.int64]]:
    """Return ways to sort values into at most `levels` bins: ranges of a cycle, values themselves, or quantiles."""
    if cyclic:
        return [np.floor(values + phase).astype(np.int64) % levels for phase in _PHASES]
    known, index = np.unique(values, return_inverse=True)
    if len(known) <= levels:
        return [index.astype(np.int64)]
    edges = np.quantile(values, np.arange(1, levels) / levels)
    return [np.searchsorted(edges, values, side="right").astype(np.int64)]


def information(left: Sequence[int], read: Sequence[float], levels: int, cyclic: bool = False) -> Information:
    """Return the bits that pass, adjusted for chance as in the adjusted mutual information (Vinh et al. 2010).

    The best of the ways to sort is taken, of the shuffled pairs too.
    """
    numbers, ways = np.array(left, dtype=np.int64), binned(np.array(read, dtype=np.float64), levels, cyclic)
    if len(numbers) < 2 or all(way.max() == way.min() for way in ways):
        return Information(0.0, 0.0, False)
    generator = np.random.default_rng(0)
    found = max(mutual(numbers, way) for way in ways)
    shuffled = [max(mutual(one, way) for way in ways) for one in map(generator.permutation, [numbers] * SHUFFLES)]
    control, spread = float(np.mean(shuffled)), float(np.std(shuffled))
    most = max(float(np.log2(levels)), control + 1e-9)
    bits = most * (found - control) / (most - control)
    return Information(min(max(bits, 0.0), most), control, found > control + _SURE * spread + 1e-9)

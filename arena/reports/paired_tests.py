"""Tests of paired data. Each gives an interval and a p value of one test, so that the two cannot disagree."""

from __future__ import annotations

import math
from collections.abc import Sequence

from arena.reports.intervals import LEVEL, Method, Quantity, Tally


def paired_t(pairs: Sequence[Tally]) -> tuple[Quantity, float | None]:
    """Return the geometric mean of some ratios and the p value of its being 1, by Student's t over their logarithms.

    The standard error is the larger of that of the pairs' spread and of what their timings alone give. One pair has
    neither interval nor p value: nothing says how much another task would differ.

    Args:
        pairs: the logarithm of each ratio, with the standard error of its timings.

    Source: Student, "The probable error of a mean", Biometrika 6(1), 1908.
    """
    from scipy.stats import t

    count = len(pairs)
    mean = sum(pair.total for pair in pairs) / count
    value = math.exp(mean)
    if count < 2:
        return Quantity(value, None, None, count, Method.NONE, count), None
    spread = math.sqrt(sum((pair.total - mean) ** 2 for pair in pairs) / (count - 1) / count)
    error = max(spread, math.hypot(*(pair.error for pair in pairs)) / count)
    if not error:
        return Quantity(value, value, value, count, Method.PAIRED_T, count), 1.0 if round(mean, 12) == 0 else 0.0
    half = float(t.ppf((1 + LEVEL) / 2, count - 1)) * error
    p_value = float(2 * t.sf(abs(mean) / error, count - 1))
    low, high = min(value, math.exp(mean - half)), max(value, math.exp(mean + half))
    return Quantity(value, low, high, count, Method.PAIRED_T, count), p_value


def sign_test(first: int, second: int, tasks: int) -> tuple[Quantity | None, float]:
    """Return by how many tasks the second side is ahead, as a share of all, and the exact p value of its being none.

    Args:
        first: tasks on which the first side is right more often.
        second: tasks on which the second is.
        tasks: all of them.

    Returns:
        The share (None without tasks), whose interval is exact given how many tasks differ, and twice the smaller tail.

    Source: Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 26(4), 1934; with one attempt a
    task it is McNemar's test, 1947.
    """
    from scipy.stats import beta, binom

    if not tasks:
        return None, 1.0
    differing, tail = first + second, (1 - LEVEL) / 2
    if not differing:
        most = 1 - tail ** (1 / tasks)  # of tasks may differ that were not drawn
        return Quantity(0.0, -most, most, tasks, Method.SIGN_TEST, tasks), 1.0
    low = float(beta.ppf(tail, second, first + 1)) if second else 0.0
    high = float(beta.ppf(1 - tail, second + 1, first)) if first else 1.0
    p_value = min(1.0, 2 * min(float(binom.cdf(second, differing, 0.5)), float(binom.sf(second - 1, differing, 0.5))))
    value, scale = (second - first) / tasks, differing / tasks
    low, high = min(value, (2 * low - 1) * scale), max(value, (2 * high - 1) * scale)
    return Quantity(value, low, high, tasks, Method.SIGN_TEST, tasks), p_value

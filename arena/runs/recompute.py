"""Recompute the figures of a recorded timing from its rounds: what a record says of itself is a claim.

Used by `arena verify`.
"""

from __future__ import annotations

import math
from dataclasses import replace

from arena.judge.performance import estimates
from arena.judge.performance.timer import config_of
from arena.results.effort import Effort
from arena.results.environment import DeviceFacts
from arena.results.record import CaseTiming, Estimate

_ROUNDING = 1e-6
_WIDEST = 3.0
"""times the interval that the rounds give today: older versions made up to 2.2 times as wide ones"""


def recomputed(timing: CaseTiming, facts: DeviceFacts, effort: Effort) -> CaseTiming | None:
    """Return a timing with the latencies, the speedup and the noise that its rounds give; None where they give none.

    Args:
        timing: as it was recorded.
        facts: of the device that it was recorded on, on which the error of the clock depends.
        effort: of the evaluation, on which the width of a noisy interval depends.
    """
    calls = timing.calls_long - timing.calls_short
    if not timing.rounds or calls < 1:
        return None
    try:
        return _recomputed(timing, facts, effort, calls)
    except (ArithmeticError, ValueError):  # rounds that nobody measured
        return None


def _recomputed(timing: CaseTiming, facts: DeviceFacts, effort: Effort, calls: int) -> CaseTiming:
    rounds, config = timing.rounds, config_of(facts)
    config = config.screening() if effort is Effort.SCREEN else config
    speedup = estimates.speedup(rounds, calls, config.reach_error_s, config.latency_error)
    wide = speedup.half_width > config.noisy_half_width or not estimates.measured(rounds, calls)
    swapped = estimates.placements(rounds)
    return replace(
        timing,
        baseline_ms=estimates.latency_ms(estimates.baseline_slopes(rounds, calls), swapped),
        candidate_ms=estimates.latency_ms(estimates.candidate_slopes(rounds, calls), swapped),
        speedup=speedup,
        noisy=timing.noisy or wide or bool(timing.undecided),
    )


def contradiction(timing: CaseTiming, found: CaseTiming | None) -> str:
    """Return what a recorded timing says against its own rounds; empty where it agrees with them.

    Args:
        timing: as it was recorded.
        found: what `recomputed` makes of it.
    """
    if found is None:
        return "it has no rounds that give a speedup"
    values = ("speedup", "baseline_ms", "candidate_ms")
    for name in values:
        one, two = getattr(timing, name).value, getattr(found, name).value
        if not math.isclose(one, two, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
            return f"its rounds give another {name}: {two:.6g}, not {one:.6g}"
    if found.noisy and not timing.noisy:
        return "its rounds are noisy, and it says that they are not"
    bare = estimates.speedup(timing.rounds, timing.calls_long - timing.calls_short)
    if not _holds(timing.speedup, bare) or not _holds(_wider(found.speedup), timing.speedup):
        return "its rounds give another interval"
    return ""


def _holds(outer: Estimate, inner: Estimate) -> bool:
    """Return whether an interval holds another one, but for rounding."""
    return outer.low <= inner.low * (1 + _ROUNDING) and outer.high >= inner.high * (1 - _ROUNDING)


def _wider(one: Estimate) -> Estimate:
    """Return an estimate with an interval `_WIDEST` times as wide on the log scale."""
    low, high = ((end / one.value) ** _WIDEST * one.value for end in (one.low, one.high))
    return Estimate(one.value, low, high)

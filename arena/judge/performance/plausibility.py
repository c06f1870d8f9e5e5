"""Plausibility checks of a timing, each a small function over numbers; the first that fails decides.

Bounds are held against the optimistic end of an interval: noise alone must not fail a candidate. Where the value
itself is beyond a bound and its interval is not, the check decides nothing, and the speed earns no credit. Nor does it
where half of the rounds in one placement are beyond a bound, and the others hide that in the median of all: a speedup
is made of both placements' medians, so that three rounds of eight decide it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from arena.judge.performance.estimates import baseline_slopes, by_place, candidate_slopes, placements, typical
from arena.judge.performance.waits import LONG, SHORT, SINGLE, Array, Waits
from arena.results.messages import message
from arena.results.record import Estimate, Round
from arena.results.verdict import Status

PLAUSIBILITY_CHECKS = (Status.IMPLAUSIBLE, Status.TIMING_MISMATCH)
_ROOFLINE_SLACK = 0.9
_EMPTY_NODE_SLACK = 0.5
"""the least of kernels took 0.66 µs in a graph on an H200, where an addition of one number took 0.87 and 1.01"""
_DEFERRAL = 0.5
_HEAD_START = 0.02
_SPREAD = 0.05
_TOLERATED = 0.005
_SLOWER = 0.01
"""after 88 ms of a slow kernel a device came back up to 0.75 ms later than after 2.5 ms of the baseline (on an H200)"""
_PREPARING = 1.5
_WAKING = 0.1
"""by which share of it two workers differ in how long they take to be woken (seen on an H200)"""
_SINGLES = 4
"""of two, one late pass of a busy machine would be the median"""
_CLOCK_DISAGREEMENT = 0.25
_DEVIATIONS = 3.0
_HIDDEN_DEVIATIONS = 2.0
"""enough where nobody fails: in 58 comparisons on an H200 honest kernels kept within 1.5"""
_HIDDEN_CHANCE = 0.03
"""the share of a pass that chance explains at most, whatever makes a baseline's surroundings vary"""
_MIDDLE_FIFTHS = 2.563
"""standard deviations of normal values that the middle four fifths of them span"""


@dataclass(frozen=True)
class PlausibilityLimits:
    """Bounds of a timing on a platform: milliseconds, but for `baseline_drift`, a ratio."""

    roofline_ms: float | None
    empty_call_ms: float
    clock_slack_ms: float
    baseline_drift: float
    workers_clock: bool = True
    """True where a worker's own clock measures what the judge's does: not where processor time is counted"""


@dataclass(frozen=True)
class Timing:
    """The numbers to check. `long` and `short`: calls in a long and in a short pass."""

    baseline_ms: Estimate
    candidate_ms: Estimate
    isolated_ms: Estimate
    """the baseline alone, before the candidate existed"""
    interleaved_ms: Estimate
    """the baseline in the same place, in turn with the candidate"""
    rounds: Sequence[Round]
    long: int
    short: int = 0
    baseline_waits: Waits = field(default_factory=Waits)
    candidate_waits: Waits = field(default_factory=Waits)
    """times before and after passes; nothing where there is no such time"""

    @property
    def swapped(self) -> Sequence[bool]:
        """The placement of each round."""
        return placements(self.rounds)

    def places(self, name: str) -> Sequence[bool]:
        """Return the placement of each pass of this name: not all rounds have single calls."""
        with_single = [measured.swapped for measured in self.rounds if measured.candidate_single_s]
        return with_single if name == SINGLE else self.swapped


def failed_check(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Return `passed`, or what is not plausible and why; `passed` and why where noise leaves a check undecided."""
    undecided = ""
    checks = (_too_fast, _deferred, _begun_early, _ended_late, _padded, _hidden, _clocks_disagree, _baseline_moved)
    for check in checks:
        status, why = check(timing, limits)
        if status is not Status.PASSED:
            return status, why
        undecided = undecided or why
    return Status.PASSED, undecided


def _too_fast(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Compare the latency with the roofline and with an empty kernel.

    Where a case declares no work at all (sequences too short to have any), launching nothing is right. A placement
    whose latency alone is too short leaves the check undecided: the mean of both hides that.
    """
    latency = timing.candidate_ms
    slopes = candidate_slopes(timing.rounds, timing.long - timing.short)
    fastest_ms = min([latency.value, *(float(np.median(part)) * 1e3 for part in by_place(slopes, timing.swapped))])
    undecided = ""
    if limits.roofline_ms is not None:
        bound_ms = _ROOFLINE_SLACK * limits.roofline_ms
        if latency.high < bound_ms:
            return Status.IMPLAUSIBLE, message("below_roofline", found_ms=latency.high, limit_ms=limits.roofline_ms)
        if fastest_ms < bound_ms:
            undecided = message("below_roofline", found_ms=fastest_ms, limit_ms=limits.roofline_ms)
    if limits.roofline_ms != 0:
        bound_ms = _EMPTY_NODE_SLACK * limits.empty_call_ms
        if latency.high < bound_ms:
            detail = message("below_empty_kernel", found_ms=latency.high, limit_ms=limits.empty_call_ms)
            return Status.IMPLAUSIBLE, detail
        if fastest_ms < bound_ms and not undecided:
            undecided = message("below_empty_kernel", found_ms=fastest_ms, limit_ms=limits.empty_call_ms)
    return Status.PASSED, undecided


def _deferred(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Fail where a call of a long pass costs far less than a call alone: it was not made where it was asked for.

    The cost of a single call is taken from the difference to the baseline's single-call passes, in which the constant
    cost of a pass cancels. It is no more than the pass of a single call takes, whatever a baseline a hundred times as
    slow may be off by. Where the baseline's single calls differ much, so may their median from its other calls.
    """
    with_single = [r for r in timing.rounds if r.candidate_single_s]
    if not with_single:
        return Status.PASSED, ""
    candidate_s = np.asarray([r.candidate_single_s for r in with_single])
    baseline_s = np.asarray([r.baseline_single_s for r in with_single])
    difference_ms = (candidate_s - baseline_s) * 1e3
    error = max(_error_of_median(difference_ms), _error_of_median(baseline_s * 1e3))
    by_difference_ms = timing.baseline_ms.value + float(np.median(difference_ms)) - _DEVIATIONS * error
    single_ms = min(by_difference_ms, float(np.median(candidate_s)) * 1e3) - limits.clock_slack_ms
    many_ms = timing.candidate_ms.value
    detail = message("work_deferred", many_ms=many_ms, calls=timing.long, single_ms=single_ms)
    if timing.candidate_ms.high < _DEFERRAL * single_ms:
        return Status.IMPLAUSIBLE, detail
    return Status.PASSED, detail if many_ms < _DEFERRAL * single_ms else ""


def _begun_early(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Fail where a worker needs longer than the baseline's to be woken for new data, before the clock starts.

    That of long passes fails a candidate. The others are subtracted, or bounds: by work done early there one would hide
    what is done late elsewhere, and earns no credit. What fails nobody may still earn none: see `_hidden`.
    """
    undecided = ""
    for name in (LONG, SHORT, SINGLE):
        candidate_ms = timing.candidate_waits.before_ms(name)
        baseline_ms = timing.baseline_waits.before_ms(name)
        if not len(candidate_ms) or not len(baseline_ms) or (name == SINGLE and len(candidate_ms) < _SINGLES):
            continue
        calls = {LONG: timing.long, SHORT: timing.short}.get(name, 1)
        allowed_ms = _PREPARING * _usual_ms(timing, name) + _error_of_both(baseline_ms) + limits.clock_slack_ms
        allowed_ms += float(np.quantile(timing.baseline_waits.ready_s[name], 0.75)) * 1e3
        allowed_ms += _HEAD_START * calls * max(timing.candidate_ms.high, 0.0)
        median_ms = float(np.median(candidate_ms))
        worst_ms = max(median_ms, typical(candidate_ms, timing.places(name)))
        detail = message("prepares_too_long", took_ms=worst_ms, calls=calls, allowed_ms=allowed_ms)
        if name == LONG and median_ms > allowed_ms:
            return Status.TIMING_MISMATCH, detail
        undecided = undecided or (detail if worst_ms > allowed_ms else "")
    return Status.PASSED, undecided


def _usual_ms(timing: Timing, name: str) -> float:
    """Return how long the baseline's worker takes to be woken for such a pass, in all but the slowest quarter."""
    return float(np.quantile(timing.baseline_waits.prepare_s[name], 0.75)) * 1e3


def _more_by_place(timing: Timing, name: str, candidate_ms: Array, baseline_ms: Array) -> float:
    """Return by how much the candidate's passes exceed the baseline's in this, by placement, as a speedup has it."""
    places = timing.places(name)
    return typical(candidate_ms, places) - typical(baseline_ms, places)


def _ended_late(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Fail where the device is less idle after a candidate's passes than after the baseline's.

    What is left would be part of the pass; or it is there to hold up the baseline, whose turn is next. The upper
    quartile of all passes counts, since fewer than half of them may be where it pays; and long ones by placement, as a
    speedup has it, which decide nothing but that there is no credit. After a candidate's longer passes the device comes
    back more slowly: a share of a pass is tolerated.
    """
    candidate, baseline = timing.candidate_waits, timing.baseline_waits
    if not len(candidate.after_ms()) or not len(baseline.after_ms()):
        return Status.PASSED, ""
    late_ms = float(np.quantile(candidate.after_ms(), 0.75) - np.quantile(baseline.after_ms(), 0.75))
    worst_ms = late_ms
    if len(candidate.after_ms(LONG)):
        worst_ms = max(late_ms, _more_by_place(timing, LONG, candidate.after_ms(LONG), baseline.after_ms(LONG)))
    allowed_ms = limits.clock_slack_ms + _error_of_both(baseline.after_ms()) + _tolerated_ms(timing)
    detail = message("busy_after_run", found_ms=worst_ms, allowed_ms=allowed_ms)
    return _mismatch(late_ms - allowed_ms, worst_ms - allowed_ms, detail)


def _padded(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Fail where a pass takes more than the baseline's beside its calls: added to short passes alone, that is a gain.

    What a pass takes beside its calls cancels between long and short ones. Both workers are reached the same way, so
    that the candidate's passes cannot cost much more beside their calls; a share of long ones is tolerated, since no
    two calls are quite alike. Where its time depends on the data and the baseline's does not, its own spread counts
    too, within a twentieth of a pass: also of a kernel that takes one time or another, which the median of few calls
    jumps between. What only that spread excuses earns no credit.
    """
    rounds, short, calls = timing.rounds, timing.short, timing.long - timing.short
    if not short:  # nothing is subtracted
        return Status.PASSED, ""
    candidate_s, slopes = np.asarray([r.candidate_short_s for r in rounds]), candidate_slopes(rounds, calls)
    baseline_s, slopes_of_baseline = np.asarray([r.baseline_short_s for r in rounds]), baseline_slopes(rounds, calls)
    of_candidate_ms = _without_calls_ms(candidate_s, slopes, short)
    of_baseline_ms = _without_calls_ms(baseline_s, slopes_of_baseline, short)
    more_ms = float(np.median(of_candidate_ms) - np.median(of_baseline_ms))
    typically_ms = _typical_without_calls_ms(candidate_s, slopes, short, timing.swapped)
    typically_ms -= _typical_without_calls_ms(baseline_s, slopes_of_baseline, short, timing.swapped)
    worst_ms = max(more_ms, typically_ms)
    own_spread_ms = min(_error_of_both(of_candidate_ms, _middle_deviation), _SPREAD * _calls_ms(timing))
    allowed_ms = 2 * limits.clock_slack_ms + _error_of_both(of_baseline_ms) + _tolerated_ms(timing)
    detail = message("short_run_padded", found_ms=worst_ms, allowed_ms=allowed_ms)
    return _mismatch(more_ms - allowed_ms - own_spread_ms, worst_ms - allowed_ms, detail)


def _hidden(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Leave it undecided where a long pass with all that surrounds it takes longer than its latency says.

    Each of the checks before has a median of its own: a candidate that begins early in some rounds, ends late in others
    and pads short passes in the rest shows in none of them. What all of it is together no trick hides.
    """
    candidate_ms = _surroundings_ms(timing.candidate_waits, [r.candidate_long_s for r in timing.rounds])
    baseline_ms = _surroundings_ms(timing.baseline_waits, [r.baseline_long_s for r in timing.rounds])
    if not len(candidate_ms) or not len(baseline_ms):
        return Status.PASSED, ""
    more_ms = _more_by_place(timing, LONG, candidate_ms, baseline_ms)
    more_ms -= timing.long * (timing.candidate_ms.value - timing.baseline_ms.value)
    allowed_ms = limits.clock_slack_ms + _tolerated_ms(timing) + _WAKING * _usual_ms(timing, LONG)
    long_ms = np.asarray([r.candidate_long_s for r in timing.rounds]) * 1e3
    without_calls_ms = baseline_ms - timing.long * baseline_slopes(timing.rounds, timing.long - timing.short) * 1e3
    chance_ms = _error_of_both(without_calls_ms) * _HIDDEN_DEVIATIONS / _DEVIATIONS
    allowed_ms += min(chance_ms, _HIDDEN_CHANCE * typical(long_ms, timing.swapped))
    detail = message("time_not_accounted", found_ms=more_ms, allowed_ms=allowed_ms)
    return Status.PASSED, detail if more_ms > allowed_ms else ""


def _surroundings_ms(waits: Waits, long_s: Sequence[float]) -> Array:
    """Return each long pass with what came before and after, in milliseconds; nothing where nobody waited."""
    around = (waits.before_ms(LONG), waits.after_ms(LONG))
    return sum(around, np.asarray(long_s) * 1e3) if all(map(len, around)) else np.zeros(0)


def _mismatch(surely_beyond_ms: float, beyond_ms: float, detail: str) -> tuple[Status, str]:
    """Return a mismatch, or the detail that leaves it undecided."""
    if surely_beyond_ms > 0:
        return Status.TIMING_MISMATCH, detail
    return Status.PASSED, detail if beyond_ms > 0 else ""


def _calls_ms(timing: Timing) -> float:
    """Return what the calls of a candidate's long pass take that a short one does not have."""
    return (timing.long - timing.short) * max(timing.candidate_ms.value, 0.0)


def _tolerated_ms(timing: Timing) -> float:
    """Return a share of the candidate's calls, and more of what they take beyond the baseline's.

    No two calls are quite alike, and what comes after a longer pass takes longer. No candidate that takes longer is
    faster.
    """
    longer_ms = _calls_ms(timing) - (timing.long - timing.short) * timing.baseline_ms.value
    return _TOLERATED * _calls_ms(timing) + _SLOWER * max(longer_ms, 0.0)


def _without_calls_ms(short_s: Array, per_call_s: Array, short: int) -> Array:
    """Return each short pass without its calls, in ms; each call is taken to cost the median of what it seems to."""
    rest: Array = (short_s - short * np.median(per_call_s)) * 1e3
    return rest


def _typical_without_calls_ms(short_s: Array, per_call_s: Array, short: int, swapped: Sequence[bool]) -> float:
    """Return a short pass without its calls in ms, typical by placement, as a speedup has it."""
    return (typical(short_s, swapped) - short * typical(per_call_s, swapped)) * 1e3


def _median_deviation(values: Array) -> float:
    """Return the standard deviation of normal values, by their median absolute deviation."""
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


def _middle_deviation(values: Array) -> float:
    """Return the same by the middle four fifths: more than half may be alike where values are of two kinds."""
    low, high = np.quantile(values, (0.1, 0.9))
    return float(high - low) / _MIDDLE_FIFTHS


def _error_of_both(values: Array, deviation: Callable[[Array], float] = _median_deviation) -> float:
    """Return what the difference of two such medians may be by chance, judged by the values of one program alone.

    Those of the baseline, wherever they suffice: a candidate that spreads its own on purpose must gain nothing by it.
    """
    return _DEVIATIONS * 2**0.5 * _error_of_median(values, deviation)


def _error_of_median(values: Array, deviation: Callable[[Array], float] = _median_deviation) -> float:
    """Return the standard error of a median of normal values."""
    return 1.2533 * deviation(values) / math.sqrt(len(values))


def _clocks_disagree(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    if not limits.workers_clock:
        return Status.PASSED, ""
    process_ms = float(np.median([r.candidate_host_s for r in timing.rounds])) * 1e3 / timing.long
    slack_ms = limits.clock_slack_ms / timing.long
    judge_ms = timing.candidate_ms
    low_ms = judge_ms.low * (1 - _CLOCK_DISAGREEMENT) - slack_ms
    high_ms = judge_ms.high * (1 + _CLOCK_DISAGREEMENT) + slack_ms
    if low_ms <= process_ms <= high_ms:
        return Status.PASSED, ""
    allowed = _CLOCK_DISAGREEMENT
    detail = message("clocks_disagree", process_ms=process_ms, judge_ms=judge_ms.value, allowed=allowed)
    return Status.TIMING_MISMATCH, detail


def _baseline_moved(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Fail where the baseline is slower than alone beyond both intervals; values alone decide nothing.

    One that is faster makes the candidate's speedup less: a machine that was busy for a while is no fault of its.
    """
    isolated, interleaved = timing.isolated_ms, timing.interleaved_ms
    ratio, slack_ms = 1 + limits.baseline_drift, limits.clock_slack_ms / timing.long

    def slower(isolated: Estimate, interleaved: Estimate) -> bool:
        return interleaved.low > isolated.high * ratio + slack_ms

    beside_ms, alone_ms, allowed = interleaved.value, isolated.value, limits.baseline_drift
    detail = message("baseline_moved", beside_ms=beside_ms, alone_ms=alone_ms, allowed=allowed)
    if slower(_widened(isolated), _widened(interleaved)):
        return Status.TIMING_MISMATCH, detail
    exact = (Estimate(one.value, one.value, one.value) for one in (isolated, interleaved))
    return Status.PASSED, detail if slower(*exact) else ""


def _widened(estimate: Estimate) -> Estimate:
    """Return an interval twice as wide: a bootstrap over few rounds is too narrow to void a result by."""
    value = estimate.value
    return Estimate(value, value - 2 * (value - estimate.low), value + 2 * (estimate.high - value))

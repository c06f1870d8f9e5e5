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
from arena.results.record import Estimate, Round
from arena.results.verdict import Status

PLAUSIBILITY_CHECKS = (Status.IMPLAUSIBLE, Status.TIMING_MISMATCH)
_ROOFLINE_SLACK = 0.9
_EMPTY_NODE_SLACK = 0.5
"""the least of kernels took 0.66 µs in a graph on an H200, where an addition of one number took 0.87 and 1.01"""
_DEFERRAL = 0.5
_HEAD_START = 0.02
_SPREAD = 0.05
_LET_BE = 0.005
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
    """What bounds a timing on a platform: milliseconds, but for `baseline_drift`, a ratio."""

    roofline_ms: float | None
    empty_call_ms: float
    clock_slack_ms: float
    baseline_drift: float
    workers_clock: bool = True
    """whether a worker's own clock measures what the judge's does: not where processor time is counted"""


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
    """what passed around passes; nothing where there is no such time"""

    @property
    def swapped(self) -> Sequence[bool]:
        """The placement of each round."""
        return placements(self.rounds)

    def places(self, name: str) -> Sequence[bool]:
        """Return the placement of each pass of this name: not all rounds have single calls."""
        with_single = [measured.swapped for measured in self.rounds if measured.candidate_single_s]
        return with_single if name == SINGLE else self.swapped


def failed_check(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Return `passed`, or what is not believable and why; `passed` and why where noise leaves a check undecided."""
    undecided = ""
    checks = (_too_fast, _deferred, _begun_early, _ended_late, _padded, _hidden, _clocks_disagree, _baseline_moved)
    for check in checks:
        status, why = check(timing, limits)
        if status is not Status.PASSED:
            return status, why
        undecided = undecided or why
    return Status.PASSED, undecided


def _too_fast(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Where a case declares no work at all (sequences too short to have any), launching nothing is right.

    A placement whose latency alone is too short leaves it undecided: the mean of both hides that.
    """
    latency, least = timing.candidate_ms, []
    slopes = candidate_slopes(timing.rounds, timing.long - timing.short)
    fastest_ms = min([latency.value, *(float(np.median(part)) * 1e3 for part in by_place(slopes, timing.swapped))])
    if limits.roofline_ms is not None:
        least.append((_ROOFLINE_SLACK * limits.roofline_ms, f"the roofline of {limits.roofline_ms:.4g} ms"))
    if limits.roofline_ms != 0:
        least.append((_EMPTY_NODE_SLACK * limits.empty_call_ms, f"an empty kernel's {limits.empty_call_ms:.4g} ms"))
    for bound_ms, what in least:
        if latency.high < bound_ms:
            return Status.IMPLAUSIBLE, f"{latency.high:.4g} ms is under {what}"
    return Status.PASSED, next((f"{fastest_ms:.4g} ms is under {what}" for ms, what in least if fastest_ms < ms), "")


def _deferred(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Calls of a long pass that cost far less than a call alone were not made where they were asked for.

    The cost of a single call is taken from the difference to the baseline's single-call passes, in which the constant
    cost of a pass cancels. It is no more than the pass of a single call takes, whatever a baseline a hundred times as
    slow may be off by. Where the baseline's single calls differ much, so may their median from its other calls.
    """
    with_single = [r for r in timing.rounds if r.candidate_single_s]
    if not with_single:
        return Status.PASSED, ""
    ours = np.asarray([r.candidate_single_s for r in with_single])
    theirs = np.asarray([r.baseline_single_s for r in with_single])
    difference = (ours - theirs) * 1e3
    error = max(_error_of_median(difference), _error_of_median(theirs * 1e3))
    interleaved_with_baseline = timing.baseline_ms.value + float(np.median(difference)) - _DEVIATIONS * error
    single = min(interleaved_with_baseline, float(np.median(ours)) * 1e3) - limits.clock_slack_ms
    said = f"{timing.candidate_ms.value:.4g} ms a call in a long pass, {single:.4g} ms alone"
    if timing.candidate_ms.high < _DEFERRAL * single:
        return Status.IMPLAUSIBLE, said
    return Status.PASSED, said if timing.candidate_ms.value < _DEFERRAL * single else ""


def _begun_early(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """A worker is woken for new data before the clock starts: it must not need longer for that than the baseline's.

    That of long passes fails a candidate. The others are subtracted, or bounds: by work done early there one would hide
    what is done late elsewhere, and earns no credit. What fails nobody may still earn none: see `_hidden`.
    """
    undecided = ""
    for name in (LONG, SHORT, SINGLE):
        ours, theirs = timing.candidate_waits.before_ms(name), timing.baseline_waits.before_ms(name)
        if not len(ours) or not len(theirs) or (name == SINGLE and len(ours) < _SINGLES):
            continue
        calls = {LONG: timing.long, SHORT: timing.short}.get(name, 1)
        let_be = _PREPARING * _usual_ms(timing, name) + _error_of_both(theirs) + limits.clock_slack_ms
        let_be += float(np.quantile(timing.baseline_waits.ready_s[name], 0.75)) * 1e3
        let_be += _HEAD_START * calls * max(timing.candidate_ms.high, 0.0)
        median, worst = float(np.median(ours)), typical(ours, timing.places(name))
        said = f"it takes {max(median, worst):.4g} ms to get ready for a {name} pass, the baseline lets {let_be:.4g}"
        if name == LONG and median > let_be:
            return Status.TIMING_MISMATCH, said
        undecided = undecided or (said if max(median, worst) > let_be else "")
    return Status.PASSED, undecided


def _usual_ms(timing: Timing, name: str) -> float:
    """Return how long the baseline's worker takes to be woken for such a pass, in all but the slowest quarter."""
    return float(np.quantile(timing.baseline_waits.prepare_s[name], 0.75)) * 1e3


def _more_by_place(timing: Timing, name: str, ours: Array, theirs: Array) -> float:
    """By how much values of the candidate's passes exceed the baseline's, by placement, as a speedup has it."""
    places = timing.places(name)
    return typical(ours, places) - typical(theirs, places)


def _ended_late(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """A worker says that its pass is over: the device must then be as idle as it is after the baseline's passes.

    What is left would be part of the pass; or it is there to hold up the baseline, whose turn is next. The upper
    quartile of all passes counts, since fewer than half of them may be where it pays; and long ones by placement, as a
    speedup has it, which decide nothing but that there is no credit. After a candidate's longer passes the device comes
    back more slowly: a share of a pass is tolerated.
    """
    ours, theirs = timing.candidate_waits, timing.baseline_waits
    if not len(ours.after_ms()) or not len(theirs.after_ms()):
        return Status.PASSED, ""
    late = worst = float(np.quantile(ours.after_ms(), 0.75) - np.quantile(theirs.after_ms(), 0.75))
    if len(ours.after_ms(LONG)):
        worst = max(late, _more_by_place(timing, LONG, ours.after_ms(LONG), theirs.after_ms(LONG)))
    let_be = limits.clock_slack_ms + _error_of_both(theirs.after_ms()) + _tolerated_ms(timing)
    said = f"the device is busy for {worst:.4g} ms after a pass is said to be over"
    return _mismatch(late - let_be, worst - let_be, said)


def _padded(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """What a pass takes beside its calls cancels between long and short ones: who adds to the short one alone gains it.

    Both workers are reached the same way, so that the candidate's passes cannot cost much more beside their calls; a
    share of long ones is tolerated, since no two calls are quite alike. Where its time depends on the data and the
    baseline's does not, its own spread counts too, within a twentieth of a pass: also of a kernel that takes one time
    or another, which the median of few calls jumps between. What only that spread excuses earns no credit.
    """
    rounds, short, calls = timing.rounds, timing.short, timing.long - timing.short
    if not short:  # nothing is subtracted
        return Status.PASSED, ""
    short_s, slopes = np.asarray([r.candidate_short_s for r in rounds]), candidate_slopes(rounds, calls)
    their_short_s, their_slopes = np.asarray([r.baseline_short_s for r in rounds]), baseline_slopes(rounds, calls)
    ours, theirs = _interleaved_calls(short_s, slopes, short), _interleaved_calls(their_short_s, their_slopes, short)
    more = float(np.median(ours) - np.median(theirs))
    typically = _typical_interleaved(short_s, slopes, short, timing.swapped)
    worst = max(more, typically - _typical_interleaved(their_short_s, their_slopes, short, timing.swapped))
    own = min(_error_of_both(ours, _middle_deviation), _SPREAD * _calls_ms(timing))
    let_be = 2 * limits.clock_slack_ms + _error_of_both(theirs) + _tolerated_ms(timing)
    said = f"a pass takes {worst:.4g} ms more beside its calls than the baseline's: what is subtracted was made longer"
    return _mismatch(more - let_be - own, worst - let_be, said)


def _hidden(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """A long pass with all that surrounds it takes no less, by however many tricks its latency was made to seem less.

    Each of the checks before has a median of its own: who begins early in some rounds, ends late in others and pads
    short passes in the rest shows in none of them. What all of it is together no trick hides.
    """
    ours = _surroundings_ms(timing.candidate_waits, [r.candidate_long_s for r in timing.rounds])
    theirs = _surroundings_ms(timing.baseline_waits, [r.baseline_long_s for r in timing.rounds])
    if not len(ours) or not len(theirs):
        return Status.PASSED, ""
    more = _more_by_place(timing, LONG, ours, theirs)
    more -= timing.long * (timing.candidate_ms.value - timing.baseline_ms.value)
    let_be = limits.clock_slack_ms + _tolerated_ms(timing) + _WAKING * _usual_ms(timing, LONG)
    long_ms = np.asarray([r.candidate_long_s for r in timing.rounds]) * 1e3
    beside_calls = theirs - timing.long * baseline_slopes(timing.rounds, timing.long - timing.short) * 1e3
    chance_ms = _error_of_both(beside_calls) * _HIDDEN_DEVIATIONS / _DEVIATIONS
    let_be += min(chance_ms, _HIDDEN_CHANCE * typical(long_ms, timing.swapped))
    said = f"a long pass and what surrounds it take {more:.4g} ms more than their calls, beyond the baseline's"
    return Status.PASSED, said if more > let_be else ""


def _surroundings_ms(waits: Waits, long_s: Sequence[float]) -> Array:
    """Return each long pass with what came before and after, in milliseconds; nothing where nobody waited."""
    around = (waits.before_ms(LONG), waits.after_ms(LONG))
    return sum(around, np.asarray(long_s) * 1e3) if all(map(len, around)) else np.zeros(0)


def _mismatch(surely_beyond_ms: float, beyond_ms: float, said: str) -> tuple[Status, str]:
    """A mismatch, or what leaves it undecided."""
    if surely_beyond_ms > 0:
        return Status.TIMING_MISMATCH, said
    return Status.PASSED, said if beyond_ms > 0 else ""


def _calls_ms(timing: Timing) -> float:
    """What the calls of a candidate's long pass take that a short one does not have."""
    return (timing.long - timing.short) * max(timing.candidate_ms.value, 0.0)


def _tolerated_ms(timing: Timing) -> float:
    """A share of the candidate's calls, and more of what they take beyond the baseline's: no such candidate is faster.

    No two calls are quite alike, and what comes after a longer pass takes longer.
    """
    longer_ms = _calls_ms(timing) - (timing.long - timing.short) * timing.baseline_ms.value
    return _LET_BE * _calls_ms(timing) + _SLOWER * max(longer_ms, 0.0)


def _interleaved_calls(short_s: Array, per_call_s: Array, short: int) -> Array:
    """Milliseconds of each short pass without its calls, each taken to cost the median of what it seems to."""
    interleaved: Array = (short_s - short * np.median(per_call_s)) * 1e3
    return interleaved


def _typical_interleaved(short_s: Array, per_call_s: Array, short: int, swapped: Sequence[bool]) -> float:
    """The same by placement, as a speedup has it."""
    return (typical(short_s, swapped) - short * typical(per_call_s, swapped)) * 1e3


def _median_deviation(values: Array) -> float:
    """The standard deviation of normal values, from their median absolute deviation: few odd ones do not matter."""
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


def _middle_deviation(values: Array) -> float:
    """The same from the middle four fifths: more than half may be alike where values are of two kinds."""
    low, high = np.quantile(values, (0.1, 0.9))
    return float(high - low) / _MIDDLE_FIFTHS


def _error_of_both(values: Array, deviation: Callable[[Array], float] = _median_deviation) -> float:
    """What the difference of two such medians may be by chance, judged by one side's alone.

    That of the baseline, wherever that will do: a candidate that shakes its own on purpose shall be given no room.
    """
    return _DEVIATIONS * 2**0.5 * _error_of_median(values, deviation)


def _error_of_median(values: Array, deviation: Callable[[Array], float] = _median_deviation) -> float:
    """Standard error of a median of normal values."""
    return 1.2533 * deviation(values) / math.sqrt(len(values))


def _clocks_disagree(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    if not limits.workers_clock:
        return Status.PASSED, ""
    worker = float(np.median([r.candidate_host_s for r in timing.rounds])) * 1e3 / timing.long
    slack = limits.clock_slack_ms / timing.long
    judge = timing.candidate_ms
    low = judge.low * (1 - _CLOCK_DISAGREEMENT) - slack
    high = judge.high * (1 + _CLOCK_DISAGREEMENT) + slack
    if not low <= worker <= high:
        return (
            Status.TIMING_MISMATCH,
            f"the worker's clock says {worker:.4g} ms a call, the judge's {judge.value:.4g} ms",
        )
    return Status.PASSED, ""


def _baseline_moved(timing: Timing, limits: PlausibilityLimits) -> tuple[Status, str]:
    """Intervals that exclude each other fail; values that differ as much, in wider intervals, decide nothing."""
    isolated, interleaved = timing.isolated_ms, timing.interleaved_ms
    ratio, slack_ms = 1 + limits.baseline_drift, limits.clock_slack_ms / timing.long

    def apart(alone: Estimate, beside: Estimate) -> bool:
        return beside.low > alone.high * ratio + slack_ms or beside.high * ratio + slack_ms < alone.low

    said = f"the baseline takes {interleaved.value:.4g} ms beside this candidate, {isolated.value:.4g} ms alone"
    if apart(_widened(isolated), _widened(interleaved)):
        return Status.TIMING_MISMATCH, said
    exact = (Estimate(one.value, one.value, one.value) for one in (isolated, interleaved))
    return Status.PASSED, said if apart(*exact) else ""


def _widened(estimate: Estimate) -> Estimate:
    """An interval twice as wide: a bootstrap over few rounds is too narrow to void a result by."""
    value = estimate.value
    return Estimate(value, value - 2 * (value - estimate.low), value + 2 * (estimate.high - value))

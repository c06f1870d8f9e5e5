"""Each plausibility check fails on what it is for, and on nothing that noise alone explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from arena.judge.performance.estimates import candidate_slopes, latency_ms
from arena.judge.performance.plausibility import PlausibilityLimits, Timing, failed_check
from arena.judge.performance.waits import LONG as LONG_PASS
from arena.judge.performance.waits import SHORT as SHORT_PASS
from arena.judge.performance.waits import SINGLE as SINGLE_PASS
from arena.judge.performance.waits import Waits
from arena.results.messages import code_of
from arena.results.record import Estimate, Round
from arena.results.verdict import Status

LIMITS = PlausibilityLimits(roofline_ms=0.005, empty_call_ms=0.001, clock_slack_ms=0.03, baseline_drift=0.1)
LONG = 100


def about(value: float, width: float = 0.01) -> Estimate:
    return Estimate(value, value * (1 - width), value * (1 + width))


def made(
    baseline_ms: float,
    per_call_ms: float,
    single_gap_ms: float | None = None,
    *,
    candidate_ms: Estimate | None = None,
    interleaved_ms: Estimate | None = None,
) -> Timing:
    """A timing in which the candidate's lone call costs `single_gap_ms` more than the baseline's."""
    gap = per_call_ms - baseline_ms if single_gap_ms is None else single_gap_ms
    baseline_s, worker_s = baseline_ms * LONG / 1e3, per_call_ms * LONG / 1e3
    measured: Sequence[Round] = [
        Round(0.0, 0.0, baseline_s, worker_s, worker_s, baseline_single_s=0.2e-3, candidate_single_s=(0.2 + gap) / 1e3)
    ] * 8
    alone = about(baseline_ms)
    return Timing(alone, candidate_ms or about(per_call_ms), alone, interleaved_ms or alone, measured, LONG)


def test_an_honest_speedup_is_believed() -> None:
    assert failed_check(made(0.100, 0.020), LIMITS) == (Status.PASSED, "")


@pytest.mark.parametrize("candidate_ms", [0.004, 0.0001])
def test_faster_than_the_roofline_is_implausible(candidate_ms: float) -> None:
    status, why = failed_check(made(0.100, candidate_ms), LIMITS)
    assert status is Status.IMPLAUSIBLE
    assert code_of(why) == "below_roofline" and f"roofline of {LIMITS.roofline_ms:.4g} ms" in why


def test_faster_than_an_empty_kernel_is_implausible() -> None:
    status, why = failed_check(made(0.100, 0.0004), replace(LIMITS, roofline_ms=None))
    assert status is Status.IMPLAUSIBLE
    assert code_of(why) == "below_empty_kernel" and "0.000404 ms a call is under half" in why


def test_the_least_of_kernels_is_believed() -> None:
    """As measured on an H200: one program that stores one number, and an addition of one number by PyTorch."""
    limits = replace(LIMITS, roofline_ms=1e-9, empty_call_ms=0.001013)
    assert failed_check(made(0.000668, 0.000663), limits) == (Status.PASSED, "")


@pytest.mark.parametrize(("roofline_ms", "status"), [(0.0, Status.PASSED), (1e-9, Status.IMPLAUSIBLE)])
def test_where_there_is_nothing_to_do_no_kernel_is_needed(roofline_ms: float, status: Status) -> None:
    assert failed_check(made(0.003, 0.0), replace(LIMITS, roofline_ms=roofline_ms))[0] is status


def test_calls_that_are_cheap_only_in_company_are_implausible() -> None:
    """Ten times faster in a long pass, but a lone call takes as long as the baseline's."""
    status, why = failed_check(made(0.200, 0.020, single_gap_ms=0.0), LIMITS)
    assert status is Status.IMPLAUSIBLE
    assert code_of(why) == "work_deferred" and f"0.02 ms a call in a timed run of {LONG} calls" in why


@pytest.mark.parametrize("worker_ms", [0.001, 0.2])
def test_clocks_that_disagree_are_a_mismatch(worker_ms: float) -> None:
    timing = made(0.100, 0.050)
    lying = [replace(measured, candidate_host_s=worker_ms * LONG / 1e3) for measured in timing.rounds]
    status, why = failed_check(replace(timing, rounds=lying), LIMITS)
    assert status is Status.TIMING_MISMATCH
    assert "clock" in why


@pytest.mark.parametrize(("interleaved_ms", "status"), [(0.2, Status.TIMING_MISMATCH), (0.103, Status.PASSED)])
def test_a_baseline_that_moved_voids_the_result(interleaved_ms: float, status: Status) -> None:
    assert failed_check(made(0.100, 0.050, interleaved_ms=about(interleaved_ms)), LIMITS)[0] is status


def test_a_baseline_that_is_faster_beside_the_candidate_takes_nothing_from_it() -> None:
    assert failed_check(made(0.100, 0.050, interleaved_ms=about(0.066)), LIMITS) == (Status.PASSED, "")


@pytest.mark.parametrize(("interleaved_ms", "status"), [(0.5, Status.PASSED), (0.9, Status.TIMING_MISMATCH)])
def test_where_a_pass_is_one_call_the_slack_of_the_clock_is_a_calls(interleaved_ms: float, status: Status) -> None:
    """On the CPU platform a busy machine makes calls of 0.1 ms three times as long."""
    timing = replace(made(0.100, 0.100, interleaved_ms=about(interleaved_ms)), long=1)
    limits = replace(LIMITS, clock_slack_ms=0.5, baseline_drift=0.2, workers_clock=False)
    assert failed_check(timing, limits)[0] is status


def test_a_wide_interval_convicts_nobody() -> None:
    assert failed_check(made(0.100, 0.0044), LIMITS)[0] is Status.IMPLAUSIBLE
    wide = made(0.100, 0.0044, candidate_ms=Estimate(0.0044, 0.001, 0.02))
    assert failed_check(wide, LIMITS)[0] is Status.PASSED


IDLE_S = [2.3e-4, 2.5e-4, 2.2e-4, 2.4e-4, 2.4e-4, 2.3e-4, 2.6e-4, 2.4e-4]
READY_S = 2e-5
BASELINE_READY_S = [2.0e-4, 2.1e-4, 1.9e-4, 2.0e-4, 2.2e-4, 2.0e-4, 1.9e-4, 2.1e-4]


def getting_ready(prepare_s: Sequence[float], *, name: str = LONG_PASS) -> Waits:
    """What is waited before passes of this name; others as the baseline's."""
    waits = Waits()
    for each, usual in zip(prepare_s, BASELINE_READY_S, strict=True):
        for which in (LONG_PASS, SHORT_PASS):
            waits.add(which, each if which == name else usual, READY_S, IDLE_S[0])
    return waits


def ending(drain_s: Sequence[float], *, others: Sequence[float] = ()) -> Waits:
    """What is waited after long passes, and after `others`."""
    waits = Waits()
    for name, values in ((LONG_PASS, drain_s), (SHORT_PASS, others)):
        for each in values:
            waits.add(name, BASELINE_READY_S[0], READY_S, each)
    return waits


@pytest.mark.parametrize(
    ("candidate_s", "status"),
    [
        (BASELINE_READY_S, Status.PASSED),
        ([1.6e-4] * 8, Status.PASSED),
        ([2.4e-4] * 7 + [9e-3], Status.PASSED),
        ([2.4e-3] * 8, Status.TIMING_MISMATCH),
        ([2.4e-3] * 7 + [1.0], Status.TIMING_MISMATCH),
        ([1.9e-4, 2.4e-3] * 4, Status.TIMING_MISMATCH),
    ],
)
def test_work_before_the_clock_starts_is_a_mismatch(candidate_s: list[float], status: Status) -> None:
    evidence = replace(
        made(0.100, 0.020), baseline_waits=getting_ready(BASELINE_READY_S), candidate_waits=getting_ready(candidate_s)
    )
    assert failed_check(evidence, LIMITS)[0] is status


@pytest.mark.parametrize(
    ("candidate_s", "status"),
    [
        (IDLE_S, Status.PASSED),
        ([2.6e-4] * 8, Status.PASSED),
        ([2.4e-4] * 7 + [9e-3], Status.PASSED),
        ([1.2e-3] * 8, Status.TIMING_MISMATCH),
        ([4e-4] * 8, Status.TIMING_MISMATCH),
        ([2.4e-4, 2.4e-3] * 4, Status.TIMING_MISMATCH),
        ([2.4e-4, 2.4e-3, 2.4e-4, 2.4e-4] + [2.4e-3, 2.4e-4] * 2, Status.TIMING_MISMATCH),
    ],
)
def test_work_after_the_clock_stopped_is_a_mismatch(candidate_s: list[float], status: Status) -> None:
    """The last two end late in some passes only, and shake: their own deviation hides nothing."""
    evidence = replace(made(0.100, 0.020), baseline_waits=ending(IDLE_S), candidate_waits=ending(candidate_s))
    assert failed_check(evidence, LIMITS)[0] is status


@pytest.mark.parametrize(("late_s", "status"), [(1e-4, Status.PASSED), (2e-3, Status.TIMING_MISMATCH)])
def test_after_a_long_pass_a_device_comes_back_more_slowly(late_s: float, status: Status) -> None:
    """A pass of 100 ms: what is seen of honest kernels is let be, a fiftieth of the pass is not."""
    slow = made(0.100, 1.0)
    drained = [seconds + late_s for seconds in IDLE_S]
    assert (
        failed_check(replace(slow, baseline_waits=ending(IDLE_S), candidate_waits=ending(drained)), LIMITS)[0] is status
    )


def test_after_passes_of_84_ms_a_device_comes_back_more_slowly() -> None:
    """Seen on an H200 of a kernel with too few programs, 35 times as slow as its baseline; as milliseconds."""
    theirs, ours = Waits(), Waits()
    for waits, long_ms, short_ms in (
        (theirs, (0.26, 0.22, 0.23, 0.22, 0.28, 0.26, 0.34, 0.28), (0.20, 0.21, 0.21, 0.20, 0.21, 0.20, 0.26, 0.20)),
        (ours, (0.63, 0.66, 0.33, 0.54, 0.95, 0.72, 0.90, 0.78), (0.26, 0.24, 0.29, 0.27, 0.26, 0.33, 0.27, 0.33)),
    ):
        for name, values in ((LONG_PASS, long_ms), (SHORT_PASS, short_ms)):
            for each in values:
                waits.add(name, BASELINE_READY_S[0], READY_S, each / 1e3)
    slow = replace(made(0.0901, 3.1159), long=27, short=3, baseline_waits=theirs, candidate_waits=ours)
    rounds = [
        Round(
            baseline_short_s=3 * 0.0901e-3,
            candidate_short_s=3 * 3.1159e-3,
            baseline_long_s=27 * 0.0901e-3,
            candidate_long_s=27 * 3.1159e-3,
            candidate_host_s=27 * 3.1159e-3,
            swapped=at > 3,
        )
        for at in range(8)
    ]
    assert failed_check(replace(slow, rounds=rounds), LIMITS) == (Status.PASSED, "")


SHORT = 12


def passes(candidate_extra_ms: list[float], jitter_ms: float = 0.01, call_ms: float = 0.02) -> Timing:
    """Rounds of a kernel of `call_ms` against one of 0.1 ms; the candidate's short pass takes so much longer."""
    rounds = []
    for place, extra_ms in enumerate(candidate_extra_ms):
        shake = jitter_ms * (-1) ** place
        rounds.append(
            Round(
                baseline_short_s=(0.1 + SHORT * 0.1 + shake) / 1e3,
                candidate_short_s=(0.1 + SHORT * call_ms - shake + extra_ms) / 1e3,
                baseline_long_s=(0.1 + LONG * 0.1) / 1e3,
                candidate_long_s=(0.1 + LONG * call_ms) / 1e3,
                candidate_host_s=LONG * call_ms / 1e3,
            )
        )
    return replace(made(0.100, call_ms), rounds=rounds, short=SHORT)


@pytest.mark.parametrize(
    ("extra_ms", "status"),
    [
        ([0.0] * 8, Status.PASSED),
        ([0.04] * 8, Status.PASSED),
        ([0.0] * 7 + [5.0], Status.PASSED),
        ([0.15, -0.15, 0.1, -0.05, 0.2, -0.1, 0.15, 0.15], Status.PASSED),
        ([0.14, 0.14, -0.2] * 4, Status.PASSED),
        ([0.5] * 8, Status.TIMING_MISMATCH),
        ([0.5] * 11 + [-0.5], Status.TIMING_MISMATCH),
        ([0.1, 1.0] * 4, Status.TIMING_MISMATCH),
    ],
)
def test_a_short_pass_made_longer_is_a_mismatch(extra_ms: list[float], status: Status) -> None:
    """Its time is subtracted; a spread that the data may explain is let be, and one made on purpose gains little."""
    assert failed_check(passes(extra_ms), LIMITS)[0] is status


@pytest.mark.parametrize(("extra_ms", "status"), [(0.2, Status.PASSED), (2.0, Status.TIMING_MISMATCH)])
def test_the_calls_of_a_long_pass_are_not_all_alike(extra_ms: float, status: Status) -> None:
    assert failed_check(passes([extra_ms] * 8, call_ms=1.0), LIMITS)[0] is status


def test_one_odd_round_does_not_hide_that_calls_are_deferred() -> None:
    deferred = made(0.200, 0.020, single_gap_ms=0.0)
    odd = replace(deferred.rounds[0], candidate_single_s=1.0)
    assert failed_check(replace(deferred, rounds=[odd, *deferred.rounds[1:]]), LIMITS)[0] is Status.IMPLAUSIBLE


def test_a_lone_call_costs_no_more_than_its_pass_takes() -> None:
    """A baseline a hundred times as slow, and off by a few milliseconds, says little about it (seen on an H200)."""
    slow = made(77.5, 0.589)
    rounds = [replace(slow.rounds[0], baseline_single_s=s, candidate_single_s=0.67e-3) for s in (71.1e-3, 73.4e-3)]
    assert failed_check(replace(slow, rounds=rounds), LIMITS) == (Status.PASSED, "")


def test_single_calls_of_a_baseline_that_differ_say_little() -> None:
    """Seen on an H200: sequences of any length, an expert 72 times as fast, and four lone calls of each."""
    slow = made(0.1796, 0.00247)
    singles = zip((123.2, 224.5, 101.7, 389.6), (98.4, 139.7, 65.9, 136.0), strict=True)
    rounds = [replace(slow.rounds[0], baseline_single_s=b / 1e6, candidate_single_s=c / 1e6) for b, c in singles]
    limits = replace(LIMITS, roofline_ms=None)
    assert failed_check(replace(slow, rounds=rounds), limits)[0] is Status.PASSED


def test_what_noise_may_explain_is_left_undecided_with_its_reason() -> None:
    """A value beyond a bound, in an interval that is not: no conviction, and a reason to withhold credit."""
    wide = replace(made(0.100, 0.004), candidate_ms=about(0.004, 0.5))
    status, why = failed_check(wide, LIMITS)
    assert status is Status.PASSED and "under the roofline" in why
    moved = made(0.100, 0.050, interleaved_ms=about(0.150, 0.3))
    status, why = failed_check(moved, LIMITS)
    assert status is Status.PASSED and "0.15 ms beside this candidate" in why
    deferred = replace(made(0.200, 0.020, single_gap_ms=0.0), candidate_ms=about(0.020, 9.0))
    assert failed_check(deferred, LIMITS)[0] is Status.PASSED
    assert "ms for a call alone" in failed_check(deferred, LIMITS)[1]


def in_two_places(timing: Timing) -> Timing:
    """The first half of its rounds in one placement, the others in the other."""
    half = len(timing.rounds) // 2
    return replace(timing, rounds=[replace(one, swapped=at >= half) for at, one in enumerate(timing.rounds)])


@pytest.mark.parametrize(
    ("extra_ms", "credited"),
    [
        ([0.0] * 8, True),
        ([0.0] * 7 + [5.0], True),
        ([3.0] + [0.0] * 6 + [3.0], True),
        ([1.0, 1.0, 1.0, 0.0] + [0.0] * 4, False),
        ([0.0] * 4 + [0.0, 3.0, 3.0, 3.0], False),
        ([0.3, 0.3, 0.3, 0.0] + [0.0] * 4, False),
    ],
)
def test_short_passes_made_longer_in_one_placement_earn_no_credit(extra_ms: list[float], credited: bool) -> None:
    """Three rounds of eight do not show in the median of all, and decide a placement's."""
    status, why = failed_check(in_two_places(passes(extra_ms, jitter_ms=0.003, call_ms=0.1)), LIMITS)
    assert status is Status.PASSED
    assert (code_of(why) == "short_run_padded") is not credited


@pytest.mark.parametrize(
    ("late_s", "credited"),
    [
        ([0.0] * 8, True),
        ([0.0] * 7 + [9e-3], True),
        ([2e-3, 2e-3, 2e-3, 0.0] + [0.0] * 4, False),
        ([0.0] * 4 + [0.0, 3e-3, 3e-3, 3e-3], False),
    ],
)
def test_work_before_the_clock_in_one_placement_earns_no_credit(late_s: list[float], credited: bool) -> None:
    ready_s = [usual + late for usual, late in zip(BASELINE_READY_S, late_s, strict=True)]
    evidence = replace(
        made(0.100, 0.020), baseline_waits=getting_ready(BASELINE_READY_S), candidate_waits=getting_ready(ready_s)
    )
    status, why = failed_check(in_two_places(evidence), LIMITS)
    assert status is Status.PASSED
    assert (code_of(why) == "prepares_too_long" and f"of {LONG} calls" in why) is not credited


@pytest.mark.parametrize("name", [SHORT_PASS, SINGLE_PASS])
def test_work_before_the_clock_of_other_passes_earns_no_credit(name: str) -> None:
    """They are subtracted, or bounds: who does in them as much too little hides what is done late elsewhere."""
    evidence, late, usual = made(0.100, 0.020), Waits(), Waits()
    for seconds in BASELINE_READY_S:
        usual.add(name, seconds, READY_S, IDLE_S[0])
        late.add(name, seconds + 4e-4, READY_S, IDLE_S[0])
    status, why = failed_check(replace(evidence, baseline_waits=usual, candidate_waits=late), LIMITS)
    assert status is Status.PASSED and code_of(why) == "prepares_too_long"
    assert f"get ready for a timed run of {1 if name == SINGLE_PASS else 0} calls; 0.39" in why
    assert failed_check(replace(evidence, baseline_waits=usual, candidate_waits=usual), LIMITS) == (Status.PASSED, "")


@pytest.mark.parametrize(("more_s", "status"), [(1e-4, Status.PASSED), (3e-4, Status.TIMING_MISMATCH)])
def test_what_comes_when_it_has_heard_of_a_pass_is_work_before_the_clock_too(more_s: float, status: Status) -> None:
    ours, theirs = Waits(), Waits()
    for seconds in BASELINE_READY_S:
        theirs.add(LONG_PASS, seconds, READY_S, IDLE_S[0])
        ours.add(LONG_PASS, seconds, READY_S + more_s, IDLE_S[0])
    evidence = replace(made(0.100, 0.020), baseline_waits=theirs, candidate_waits=ours)
    assert failed_check(evidence, LIMITS)[0] is status


def test_of_what_a_baseline_needs_to_get_ready_half_as_much_again_is_let_be_but_not_of_the_last_step() -> None:
    """A worker that says at once that it is ready had nothing to do there."""
    theirs = Waits()
    for _ in range(8):
        theirs.add(LONG_PASS, 0.0, 1e-3, IDLE_S[0])
    ours = Waits()
    for _ in range(8):
        ours.add(LONG_PASS, 0.0, 1.2e-3, IDLE_S[0])
    evidence = replace(made(0.100, 0.020), baseline_waits=theirs, candidate_waits=ours)
    assert failed_check(evidence, LIMITS)[0] is Status.TIMING_MISMATCH


@pytest.mark.parametrize(
    ("late_s", "credited"),
    [
        ([0.0] * 8, True),
        ([0.0] * 7 + [9e-3], True),
        ([2.5e-3, 2.5e-3, 2.5e-3, 0.0] + [0.0] * 4, False),
        ([0.0] * 5 + [3e-4] * 3, False),
    ],
)
def test_long_passes_that_end_late_in_one_placement_earn_no_credit(late_s: list[float], credited: bool) -> None:
    """Three of sixteen passes do not show in the upper quartile of all, and decide a placement's latency."""
    ours = ending([usual + late for usual, late in zip(IDLE_S, late_s, strict=True)], others=IDLE_S)
    evidence = replace(made(0.100, 0.020), baseline_waits=ending(IDLE_S, others=IDLE_S), candidate_waits=ours)
    status, why = failed_check(in_two_places(evidence), LIMITS)
    assert status is Status.PASSED
    assert ("the device is busy" in why) is not credited


def rotating(hidden_ms: float, early: Sequence[int], padded: Sequence[int]) -> Timing:
    """A kernel like its baseline, with passes of 5 ms: some begin early, and short ones of other rounds are padded."""
    call_ms, long, short, over_ms = 0.05, 100, 12, 0.02
    ours, theirs, rounds = Waits(), Waits(), []
    for at in range(16):
        begun, more = hidden_ms * (at in early), hidden_ms * (at in padded)
        short_s, long_s = (short * call_ms + over_ms) / 1e3, (long * call_ms + over_ms) / 1e3
        rounds.append(
            Round(short_s, short_s + more / 1e3, long_s, long_s - begun / 1e3, long_s - begun / 1e3, swapped=at >= 8)
        )
        ready_s = BASELINE_READY_S[at % 8]
        theirs.add(LONG_PASS, ready_s, READY_S, IDLE_S[at % 8])
        ours.add(LONG_PASS, ready_s + begun / 1e3, READY_S, IDLE_S[at % 8])
    swapped = [measured.swapped for measured in rounds]
    candidate = latency_ms(candidate_slopes(rounds, long - short), swapped)
    alone = about(call_ms)
    return Timing(alone, candidate, alone, alone, rounds, long, short, baseline_waits=theirs, candidate_waits=ours)


@pytest.mark.parametrize(
    ("hidden_ms", "early", "padded", "credited"),
    [
        (0.0, (), (), True),
        (1.0, (0,), (1,), True),
        (1.0, (0, 1, 2, 8, 9, 10), (3, 4, 5, 11, 12, 13), False),
        (0.5, (0, 1, 2, 8, 9, 10), (3, 4, 5, 11, 12, 13), False),
    ],
)
def test_tricks_that_take_turns_earn_no_credit(
    hidden_ms: float, early: Sequence[int], padded: Sequence[int], credited: bool
) -> None:
    """Each is in fewer than half of a placement's rounds, and together they decide its latency."""
    timing = rotating(hidden_ms, early, padded)
    status, why = failed_check(timing, replace(LIMITS, roofline_ms=None))
    assert status is Status.PASSED, why
    assert bool(why) is not credited, why
    assert hidden_ms != 0.5 or code_of(why) == "time_not_accounted", "where no other check has seen it"
    assert (timing.candidate_ms.value < 0.049) is not credited


WAKING_S = [0.75e-3, 0.80e-3, 0.85e-3, 0.80e-3]
"""on an H200: stopped while its data were written, and asked twice whether it is there"""


VARYING_S = [0.4e-3, 1.2e-3, 0.5e-3, 1.1e-3]
"""the same of a worker that somebody shakes"""


@pytest.mark.parametrize(
    ("begun_ms", "baseline_s", "credited"),
    [
        (0.0, WAKING_S, True),
        (0.06, WAKING_S, True),
        (0.35, WAKING_S, False),
        (0.0, VARYING_S, True),
        (0.35, VARYING_S, False),
    ],
)
def test_of_what_a_worker_needs_to_be_woken_no_share_is_room_for_work(
    begun_ms: float, baseline_s: Sequence[float], credited: bool
) -> None:
    """Begun in every long pass before the clock: of one of 5 ms, 0.35 ms are seven per cent."""
    honest = in_two_places(passes([0.0] * 8, jitter_ms=0.003, call_ms=0.05))
    rounds = [replace(one, candidate_long_s=one.candidate_long_s - begun_ms / 1e3) for one in honest.rounds]
    ours, theirs = Waits(), Waits()
    for at in range(len(rounds)):
        theirs.add(LONG_PASS, baseline_s[at % 4], READY_S, IDLE_S[at])
        ours.add(LONG_PASS, WAKING_S[(at + 1) % 4] + begun_ms / 1e3, READY_S, IDLE_S[at])
    candidate_ms = latency_ms(candidate_slopes(rounds, LONG - SHORT), [one.swapped for one in rounds])
    timing = replace(honest, rounds=rounds, candidate_ms=candidate_ms, baseline_waits=theirs, candidate_waits=ours)
    status, why = failed_check(timing, LIMITS)
    assert status is Status.PASSED, why
    assert bool(why) is not credited, why


def test_a_latency_that_one_placement_alone_makes_too_short_earns_no_credit() -> None:
    """0.1 ms in one place and 0.001 in the other: their mean is above the roofline of 0.005."""
    timing = in_two_places(replace(made(0.100, 0.0505), candidate_ms=about(0.0505)))
    rounds = [replace(one, candidate_long_s=(1e-6 if one.swapped else 1e-4) * LONG) for one in timing.rounds]
    status, why = failed_check(replace(timing, rounds=rounds), LIMITS)
    assert status is Status.PASSED and "0.001 ms a call is under the roofline" in why


def test_what_only_its_own_spread_excuses_earns_no_credit() -> None:
    """As an expert whose calls take one time or another, by the data: no conviction, and no speedup to boast of."""
    status, why = failed_check(passes([0.14, 0.14, -0.2] * 4), LIMITS)
    assert status is Status.PASSED and code_of(why) == "short_run_padded"

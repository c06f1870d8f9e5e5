"""What the other items decide, from evaluations and builds. Pure functions: evidence in, answer out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from arena.checks.doctor.evidence import Answer, CrossSeen, ItemOutcome, VendorBuilds
from arena.results.environment import DeviceFacts
from arena.results.portability import BuildOutcome
from arena.results.record import CaseTiming, Evaluation, Mode
from arena.results.verdict import Status

LONG_ENOUGH_MS = 0.1
_DETAIL = 300


@dataclass(frozen=True)
class Bounds:
    """How far timings may be off: two clocks from each other, relatively and in ms a pass; a speedup from 1."""

    clocks: float
    clock_slack_ms: float
    same: float


ON_GPU = Bounds(clocks=0.05, clock_slack_ms=0.03, same=0.02)
EMULATED = Bounds(clocks=0.25, clock_slack_ms=0.5, same=0.30)


def bounds(facts: DeviceFacts) -> Bounds:
    """Those of a GPU, or the wide ones of an emulation, where timing is only tried."""
    return EMULATED if facts.emulated else ON_GPU


def passes(evaluation: Evaluation) -> Answer:
    """Fails where the judge says anything but `passed`."""
    if evaluation.status is not Status.PASSED:
        return Answer(ItemOutcome.FAIL, _verdict(evaluation))
    built = evaluation.seconds.get("build", 0.0)
    how = f", built in {built:.1f} s" if built else ""
    return Answer(ItemOutcome.PASS, f"right in {len(evaluation.cases)} cases{how}")


def ends_as(evaluation: Evaluation, wanted: Status) -> Answer:
    """Fails where the judge says anything but `wanted`."""
    if evaluation.status is not wanted:
        return Answer(ItemOutcome.FAIL, f"expected {wanted}: {_verdict(evaluation)}")
    return Answer(ItemOutcome.PASS, _verdict(evaluation))


def with_32_lanes(evaluation: Evaluation) -> Answer:
    """Fails where a kernel that takes a wave for 32 lanes does not end as it must on waves of this size."""
    facts = evaluation.environment.device
    wanted = Status.PASSED if facts.wave_size == 32 else Status.WRONG_RESULT
    return ends_as(evaluation, Status.WAVE_SIZE_DEPENDENT if facts.emulated else wanted)


def captured(evaluation: Evaluation) -> Answer:
    """Fails where any case was timed otherwise than as a device graph."""
    return _in_mode(evaluation, Mode.GRAPH)


def not_captured(evaluation: Evaluation) -> Answer:
    """Fails where a kernel that no graph can hold is not timed as a stream."""
    return _in_mode(evaluation, Mode.STREAM)


def clocks(evaluations: Iterable[Evaluation], allowed: Bounds) -> Answer:
    """Fails where the judge's clock and the worker's (device events on a GPU) disagree on the longest kernel."""
    timing = _longest(evaluations)
    if timing is None:
        return Answer(ItemOutcome.FAIL, "no case was timed")
    if timing.candidate_ms.value < LONG_ENOUGH_MS:
        return Answer(
            ItemOutcome.SKIPPED, f"the longest kernel takes {timing.candidate_ms.value:.3f} ms: too short to tell"
        )
    judge = timing.candidate_ms.value
    worker = float(np.median([r.candidate_host_s for r in timing.rounds])) * 1e3 / timing.calls_long
    allowed_ms = allowed.clocks * judge + allowed.clock_slack_ms / timing.calls_long
    seen = f"judge {judge:.3f} ms, worker {worker:.3f} ms a call, {allowed_ms:.3f} ms apart allowed"
    return Answer(ItemOutcome.PASS if abs(worker - judge) <= allowed_ms else ItemOutcome.FAIL, seen)


def against_itself(evaluations: Iterable[Evaluation], allowed: Bounds) -> Answer:
    """Fails where the baseline kernel, timed against itself on the longest case, is faster or slower than it is.

    Skipped where noise may be the reason: the interval reaches into what is allowed.
    """
    timing = _longest(evaluations)
    if timing is None:
        return Answer(ItemOutcome.FAIL, "no case was timed")
    ratio = timing.speedup
    seen = (
        f"speedup {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] at {timing.baseline_ms.value:.3f} ms, "
        f"{allowed.same:.0%} allowed"
    )
    if abs(ratio.value - 1.0) <= allowed.same:
        return Answer(ItemOutcome.PASS, seen)
    if ratio.low <= 1 + allowed.same and ratio.high >= 1 - allowed.same:
        return Answer(ItemOutcome.SKIPPED, f"{seen}: too noisy to tell; try again on an idle machine")
    return Answer(ItemOutcome.FAIL, seen)


def vendors(seen: CrossSeen, language: str, vendor: str) -> Answer:
    """Fails where something does not build that this machine claims to build; skipped where it lacks a tool."""
    found = next((each for each in seen.vendors if (each.language, each.vendor) == (language, vendor)), None)
    if found is None:
        return Answer(ItemOutcome.FAIL, seen.problem or "not tried")
    if not found.builds:
        return Answer(ItemOutcome.SKIPPED, found.missing or "no target is known")
    failed = [build for build in found.builds if build.outcome is not BuildOutcome.BUILT]
    if failed:
        return Answer(ItemOutcome.FAIL, "; ".join(f"{build.target}: {_gist(build.detail)}" for build in failed))
    return Answer(ItemOutcome.PASS, _built(found))


def _built(found: VendorBuilds) -> str:
    return (
        f"{', '.join(build.target for build in found.builds)} in {sum(b.seconds for b in found.builds):.1f} s of work"
    )


def _gist(detail: str) -> str:
    """The last line of a Python traceback; of anything else the beginning, where compilers say what is wrong."""
    return detail.strip().splitlines()[-1] if "Traceback" in detail else detail[:_DETAIL]


def _in_mode(evaluation: Evaluation, wanted: Mode) -> Answer:
    if evaluation.status is not Status.PASSED:
        return Answer(ItemOutcome.FAIL, _verdict(evaluation))
    modes = [case.timing.mode for case in evaluation.cases if case.timing is not None]
    if not modes:
        return Answer(ItemOutcome.FAIL, "no case was timed")
    other = [mode for mode in modes if mode is not wanted]
    if other:
        return Answer(ItemOutcome.FAIL, f"{len(other)} of {len(modes)} cases were timed as {other[0]}, not as {wanted}")
    return Answer(ItemOutcome.PASS, f"{len(modes)} cases timed as {wanted}")


def _longest(evaluations: Iterable[Evaluation]) -> CaseTiming | None:
    timings: Sequence[CaseTiming] = [
        case.timing for evaluation in evaluations for case in evaluation.cases if case.timing is not None
    ]
    return max(timings, key=lambda timing: timing.candidate_ms.value, default=None)


def _verdict(evaluation: Evaluation) -> str:
    """The status, and why."""
    for verdict in evaluation.verdicts:
        if verdict.status is evaluation.status and verdict.detail:
            return f"{evaluation.status}: {verdict.detail[-_DETAIL:]}"
    return str(evaluation.status)

"""The items, in the order in which they are tried: what each checks, and on which platforms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from arena.checks.doctor import candidates as c
from arena.checks.doctor.evidence import Answer, CrossSeen, DeviceSeen, Evidence, ItemOutcome, ProbeSeen, VendorBuilds
from arena.errors import InfrastructureError, UsageError
from arena.judge.workers.late_work import DELAYS
from arena.platforms.rocm.hip_launch import THREADS
from arena.processes.sandbox.namespaces import NO_INET, OWN_NETWORK, parts_of
from arena.results.environment import DeviceFacts
from arena.results.messages import bare
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
    """Return the last line of a Python traceback; of anything else the beginning, where compilers report errors."""
    detail = bare(detail)
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
            return f"{evaluation.status}: {bare(verdict.detail)[-_DETAIL:]}"
    return str(evaluation.status)


_ARCH = re.compile(r"gfx\d{1,2}[0-9a-f]{2}|sm_\d{2,3}|cpu")
_WAVE_SIZES = (32, 64)
_MEMORY_SLACK = 0.05
_KEPT_SHARE = 16
_WALLS = {
    OWN_NETWORK: "candidates can reach the network",
    "mount": "candidates can read task folders, held-out cases included",
}
_ONE_AT_A_TIME = (
    "have the device run one process at a time: as root, write 1 for each partition to "
    "/sys/class/drm/cardN/device/enforce_isolation, or load amdgpu with hws_max_conc_proc=0"
)
_FILTERED = "the system call filter alone keeps candidates from the network"


def facts(device: DeviceSeen) -> Answer:
    """Fails where the arch is no arch, a figure cannot be, or the runtime counts other memory than the facts do."""
    known, memory = device.facts, device.memory
    problems = []
    if not _ARCH.fullmatch(known.arch):
        problems.append(f"{known.arch!r} is no arch that a compiler would know")
    if device.multiprocessors < 1:
        problems.append("no multiprocessors")
    if known.wave_size not in _WAVE_SIZES:
        problems.append(f"a wave of {known.wave_size}")
    if abs(memory.total_bytes - known.memory_bytes) > _MEMORY_SLACK * known.memory_bytes:
        problems.append(f"{known.memory_bytes} bytes of memory, but the runtime counts {memory.total_bytes}")
    if not 0 < memory.free_bytes <= memory.total_bytes:
        problems.append(f"{memory.free_bytes} of {memory.total_bytes} bytes are free")
    if not known.emulated and known.last_level_cache_bytes < 1:
        problems.append("no cache: nothing would be measured cold")
    if problems:
        return Answer(ItemOutcome.FAIL, "; ".join(problems))
    peaks = "an emulation has no peaks" if known.emulated else known.peak_source or "peaks unknown: no roofline"
    seen = (
        f"{known.name} ({known.arch}), {device.multiprocessors} multiprocessors, "
        f"{_gib(memory.free_bytes)} of {_gib(memory.total_bytes)} free, "
        f"last-level cache {known.last_level_cache_bytes / 2**20:.0f} MiB; {peaks}"
    )
    return Answer(ItemOutcome.PASS, seen)


def wave_size(probe: ProbeSeen) -> Answer:
    """Fails where a kernel reads another `warpSize` than the facts say, or does not get that far."""
    if probe.device is None or probe.exchange is None:
        return _not_seen(probe)
    said, found = probe.device.facts.wave_size, probe.exchange.wave_size
    if said != found:
        return Answer(ItemOutcome.FAIL, f"the facts say {said}, a kernel reads {found}")
    return Answer(ItemOutcome.PASS, f"{found}, as a kernel compiled in {probe.compiled_s or 0:.1f} s reads it")


def shared_buffer(probe: ProbeSeen) -> Answer:
    """Fails where the worker could not map the buffer, or either side missed what the other wrote."""
    seen = probe.exchange
    if seen is None:
        return _not_seen(probe)
    if seen.wrong_elements:
        return Answer(ItemOutcome.FAIL, f"{seen.wrong_elements} of {seen.elements} elements came back wrong")
    return Answer(ItemOutcome.PASS, f"{seen.elements} elements there and back, worker behind {seen.isolation}")


def memory_returned(probe: ProbeSeen) -> Answer:
    """Fails where freeing a buffer leaves more than a sixteenth of it in use, or where it was never in use."""
    if probe.memory is None:
        return _not_seen(probe)
    seen = probe.memory
    taken, kept = seen.during_bytes - seen.before_bytes, seen.after_bytes - seen.before_bytes
    if taken < seen.buffer_bytes // 2:
        return Answer(
            ItemOutcome.FAIL, f"a buffer of {_mib(seen.buffer_bytes)} took {_mib(taken)}: it cannot be followed"
        )
    if kept > seen.buffer_bytes // _KEPT_SHARE:
        return Answer(ItemOutcome.FAIL, f"{_mib(kept)} of {_mib(seen.buffer_bytes)} in use after both sides closed it")
    return Answer(ItemOutcome.PASS, f"{_mib(taken)} in use while shared, {_mib(max(kept, 0))} afterwards")


def hip_python(device: DeviceSeen) -> Answer:
    """Fails where hip-python and PyTorch contradict each other; a hip-python that sees nothing is a warning."""
    if device.remarks:
        return Answer(ItemOutcome.FAIL, "; ".join(device.remarks))
    if not device.hip_devices:
        return Answer(ItemOutcome.WARNING, f"hip-python sees no device, PyTorch does: {device.asked_hip}")
    return Answer(ItemOutcome.PASS, f"hip-python and PyTorch agree on arch, wave size and memory of {device.asked_hip}")


def code_object(probe: ProbeSeen) -> Answer:
    """Fails where a kernel that hip-python launched computed something else; without hip-python it is a warning."""
    if probe.device is None or probe.launched is None:
        return _not_seen(probe)
    seen, wave = probe.launched, probe.device.facts.wave_size
    if seen.problem:
        outcome = ItemOutcome.FAIL if probe.device.hip_devices else ItemOutcome.WARNING
        return Answer(outcome, f"hip-python launched nothing: {seen.problem}")
    expected = (wave, *range(2, len(seen.output) + 1))
    wrong = sum(one != other for one, other in zip(seen.output, expected, strict=False))
    if wrong or not seen.output:
        return Answer(ItemOutcome.FAIL, f"{wrong} of {len(seen.output)} elements wrong, the first is {seen.output[:1]}")
    held = f"{seen.blocks} blocks of {THREADS} threads in a compute unit at once"
    return Answer(ItemOutcome.PASS, f"{len(seen.output)} elements right, {held}")


def isolation(level: str) -> Answer:
    """Warns where the sandbox lacks one of two parts; fails where it does not even have its own session."""
    walls = parts_of(level)
    if "session" not in walls:
        return Answer(ItemOutcome.FAIL, f"workers say they are behind {level!r}")
    costs = {**_WALLS, OWN_NETWORK: _FILTERED} if NO_INET in walls else _WALLS
    missing = [f"no {wall}: {cost}" for wall, cost in costs.items() if wall not in walls]
    if missing:
        return Answer(ItemOutcome.WARNING, "; ".join([*missing, "allow user namespaces, or run as root"]))
    return Answer(ItemOutcome.PASS, level)


def late_work(found: str, platform: str) -> Answer:
    """Warns where work that a candidate leaves does not delay the judge's own kernels, or nobody knows."""
    if found == DELAYS:
        return Answer(ItemOutcome.PASS, f"it {found}")
    how = f"; {_ONE_AT_A_TIME}" if platform == "rocm" else ""
    return Answer(ItemOutcome.WARNING, f"{found}, so the judge compares more elements after each pass{how}")


def _not_seen(probe: ProbeSeen) -> Answer:
    return Answer(ItemOutcome.FAIL, probe.problem or "the probe ended before it came to this")


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:.1f} GiB"


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:.0f} MiB"


EVERYWHERE = ("cpu", "cuda", "rocm")
GPUS = ("cuda", "rocm")


@dataclass(frozen=True)
class DoctorItem:
    """One thing that must work. `check` raises `ArenaError` where its evidence cannot be had."""

    name: str
    check: Callable[[Evidence], Answer]
    platforms: tuple[str, ...] = EVERYWHERE


def device_of(evidence: Evidence) -> DeviceSeen:
    """The device; raises `InfrastructureError` where the probe found none."""
    seen = evidence.probe()
    if seen.device is None:
        raise InfrastructureError(seen.problem or "the probe saw no device")
    return seen.device


def _facts(evidence: Evidence) -> Answer:
    return facts(device_of(evidence))


def _hip_python(evidence: Evidence) -> Answer:
    return hip_python(device_of(evidence))


def _clocks(evidence: Evidence) -> Answer:
    started = [evidence.evaluation(name) for name in (c.START_HIP, c.START_TRITON)]
    return clocks(started, bounds(device_of(evidence).facts))


def _against_itself(evidence: Evidence) -> Answer:
    started = [evidence.evaluation(name) for name in (c.START_HIP, c.START_TRITON)]
    return against_itself(started, bounds(device_of(evidence).facts))


def _cross_compiles(language: str, vendor: str) -> Callable[[Evidence], Answer]:
    return lambda evidence: vendors(evidence.cross_compilation(), language, vendor)


ITEMS = (
    DoctorItem("device facts", _facts),
    DoctorItem("wave size", lambda e: wave_size(e.probe())),
    DoctorItem("buffer shared with a worker", lambda e: shared_buffer(e.probe())),
    DoctorItem("memory given back", lambda e: memory_returned(e.probe())),
    DoctorItem("hip-python agrees", _hip_python, ("rocm",)),
    DoctorItem("a code object by hip-python", lambda e: code_object(e.probe()), ("rocm",)),
    DoctorItem("isolation of workers", lambda e: isolation(e.isolation())),
    DoctorItem("late work is noticed", lambda e: late_work(e.late_work(), device_of(e).facts.platform), GPUS),
    DoctorItem("HIP kernel", lambda e: passes(e.evaluation(c.START_HIP))),
    DoctorItem("Triton kernel", lambda e: passes(e.evaluation(c.START_TRITON))),
    DoctorItem("graph capture", lambda e: captured(e.evaluation(c.START_HIP)), GPUS),
    DoctorItem("a kernel that waits", lambda e: not_captured(e.evaluation(c.WAITS)), GPUS),
    DoctorItem("two clocks", _clocks, ("cuda", "rocm")),  # elsewhere processor time is counted, which is no clock's
    DoctorItem("a kernel against itself", _against_itself),
    DoctorItem("a wrong kernel", lambda e: ends_as(e.evaluation(c.WRONG), Status.WRONG_RESULT)),
    DoctorItem("a write past the end", lambda e: ends_as(e.evaluation(c.PAST_THE_END), Status.OUT_OF_BOUNDS)),
    DoctorItem("a kernel for 32 lanes", lambda e: with_32_lanes(e.evaluation(c.ASSUMES_32))),
    DoctorItem("HIP for AMD GPUs", _cross_compiles("hip", "amd")),
    DoctorItem("HIP for NVIDIA GPUs", _cross_compiles("hip", "nvidia")),
    DoctorItem("Triton for AMD GPUs", _cross_compiles("triton", "amd")),
    DoctorItem("Triton for NVIDIA GPUs", _cross_compiles("triton", "nvidia")),
)


def chosen(only: Sequence[str]) -> tuple[DoctorItem, ...]:
    """The items with one of these texts in their names, in their own order; all where there is none."""
    for text in only:
        if not any(text in item.name for item in ITEMS):
            names = ", ".join(item.name for item in ITEMS)
            raise UsageError(f"no item with {text!r} in its name; there are: {names}")
    return tuple(item for item in ITEMS if not only or any(text in item.name for text in only))

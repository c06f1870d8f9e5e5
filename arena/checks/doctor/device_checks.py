"""What the device items decide, from what the probe wrote down. Pure functions: evidence in, answer out."""

from __future__ import annotations

import re

from arena.checks.doctor.evidence import Answer, DeviceSeen, ItemOutcome, ProbeSeen
from arena.platforms.rocm.hip_launch import THREADS
from arena.processes.sandbox.namespaces import NO_INET, OWN_NETWORK, parts_of

_ARCH = re.compile(r"gfx\d{1,2}[0-9a-f]{2}|sm_\d{2,3}|cpu")
_WAVE_SIZES = (32, 64)
_MEMORY_SLACK = 0.05
_KEPT_SHARE = 16
_WALLS = {
    OWN_NETWORK: "candidates can reach the network",
    "mount": "candidates can read task folders, held-out cases included",
}
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


def _not_seen(probe: ProbeSeen) -> Answer:
    return Answer(ItemOutcome.FAIL, probe.problem or "the probe ended before it came to this")


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / 2**30:.1f} GiB"


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:.0f} MiB"

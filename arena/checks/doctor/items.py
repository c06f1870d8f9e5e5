"""The items, in the order in which they are tried: what each checks, and on which platforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arena.checks.doctor import candidates as c
from arena.checks.doctor import checks, device_checks
from arena.checks.doctor.evidence import Answer, DeviceSeen, Evidence
from arena.errors import InfrastructureError, UsageError
from arena.results.verdict import Status

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
    return device_checks.facts(device_of(evidence))


def _hip_python(evidence: Evidence) -> Answer:
    return device_checks.hip_python(device_of(evidence))


def _clocks(evidence: Evidence) -> Answer:
    started = [evidence.evaluation(name) for name in (c.START_HIP, c.START_TRITON)]
    return checks.clocks(started, checks.bounds(device_of(evidence).facts))


def _against_itself(evidence: Evidence) -> Answer:
    started = [evidence.evaluation(name) for name in (c.START_HIP, c.START_TRITON)]
    return checks.against_itself(started, checks.bounds(device_of(evidence).facts))


def _cross_compiles(language: str, vendor: str) -> Callable[[Evidence], Answer]:
    return lambda evidence: checks.vendors(evidence.cross_compilation(), language, vendor)


ITEMS = (
    DoctorItem("device facts", _facts),
    DoctorItem("wave size", lambda e: device_checks.wave_size(e.probe())),
    DoctorItem("buffer shared with a worker", lambda e: device_checks.shared_buffer(e.probe())),
    DoctorItem("memory given back", lambda e: device_checks.memory_returned(e.probe())),
    DoctorItem("hip-python agrees", _hip_python, ("rocm",)),
    DoctorItem("a code object by hip-python", lambda e: device_checks.code_object(e.probe()), ("rocm",)),
    DoctorItem("isolation of workers", lambda e: device_checks.isolation(e.isolation())),
    DoctorItem("HIP kernel", lambda e: checks.passes(e.evaluation(c.START_HIP))),
    DoctorItem("Triton kernel", lambda e: checks.passes(e.evaluation(c.START_TRITON))),
    DoctorItem("graph capture", lambda e: checks.captured(e.evaluation(c.START_HIP)), GPUS),
    DoctorItem("a kernel that waits", lambda e: checks.not_captured(e.evaluation(c.WAITS)), GPUS),
    DoctorItem("two clocks", _clocks, ("cuda", "rocm")),  # elsewhere processor time is counted, which is no clock's
    DoctorItem("a kernel against itself", _against_itself),
    DoctorItem("a wrong kernel", lambda e: checks.ends_as(e.evaluation(c.WRONG), Status.WRONG_RESULT)),
    DoctorItem("a write past the end", lambda e: checks.ends_as(e.evaluation(c.PAST_THE_END), Status.OUT_OF_BOUNDS)),
    DoctorItem("a kernel for 32 lanes", lambda e: checks.with_32_lanes(e.evaluation(c.ASSUMES_32))),
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

"""The items, in the order in which they are tried: what each looks at, and on which platforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from arena.errors import InfrastructureError, UsageError
from arena.judge.self_test import candidates as c
from arena.judge.self_test import device_looks, looks
from arena.judge.self_test.evidence import Answer, DeviceSeen, Evidence
from arena.model.verdict import Status

EVERYWHERE = ("cpu", "cuda", "rocm")
GPUS = ("cuda", "rocm")


@dataclass(frozen=True)
class SelfTestItem:
    """One thing that must work. `look` raises `ArenaError` where its evidence cannot be had."""

    name: str
    look: Callable[[Evidence], Answer]
    platforms: tuple[str, ...] = EVERYWHERE


def device_of(evidence: Evidence) -> DeviceSeen:
    """The device; raises `InfrastructureError` where the probe found none."""
    seen = evidence.probe()
    if seen.device is None:
        raise InfrastructureError(seen.problem or "the probe saw no device")
    return seen.device


def _facts(evidence: Evidence) -> Answer:
    return device_looks.facts(device_of(evidence))


def _hip_python(evidence: Evidence) -> Answer:
    return device_looks.hip_python(device_of(evidence))


def _clocks(evidence: Evidence) -> Answer:
    started = [evidence.evaluation(name) for name in (c.START_HIP, c.START_TRITON)]
    return looks.clocks(started, looks.bounds(device_of(evidence).facts))


def _against_itself(evidence: Evidence) -> Answer:
    started = [evidence.evaluation(name) for name in (c.START_HIP, c.START_TRITON)]
    return looks.against_itself(started, looks.bounds(device_of(evidence).facts))


def _crossed(language: str, vendor: str) -> Callable[[Evidence], Answer]:
    return lambda evidence: looks.crossed(evidence.cross_compilation(), language, vendor)


ITEMS = (
    SelfTestItem("device facts", _facts),
    SelfTestItem("wave size", lambda e: device_looks.wave_size(e.probe())),
    SelfTestItem("buffer shared with a worker", lambda e: device_looks.shared_buffer(e.probe())),
    SelfTestItem("memory given back", lambda e: device_looks.memory_returned(e.probe())),
    SelfTestItem("hip-python agrees", _hip_python, ("rocm",)),
    SelfTestItem("isolation of workers", lambda e: device_looks.isolation(e.isolation())),
    SelfTestItem("HIP kernel", lambda e: looks.passes(e.evaluation(c.START_HIP))),
    SelfTestItem("Triton kernel", lambda e: looks.passes(e.evaluation(c.START_TRITON))),
    SelfTestItem("graph capture", lambda e: looks.captured(e.evaluation(c.START_HIP)), GPUS),
    SelfTestItem("a kernel that waits", lambda e: looks.not_captured(e.evaluation(c.WAITS)), GPUS),
    SelfTestItem("two clocks", _clocks, ("cuda", "rocm")),  # elsewhere processor time is counted, which is no clock's
    SelfTestItem("a kernel against itself", _against_itself),
    SelfTestItem("a wrong kernel", lambda e: looks.ends_as(e.evaluation(c.WRONG), Status.WRONG_RESULT)),
    SelfTestItem("a write past the end", lambda e: looks.ends_as(e.evaluation(c.PAST_THE_END), Status.OUT_OF_BOUNDS)),
    SelfTestItem("a kernel for 32 lanes", lambda e: looks.with_32_lanes(e.evaluation(c.ASSUMES_32))),
    SelfTestItem("HIP for AMD GPUs", _crossed("hip", "amd")),
    SelfTestItem("HIP for NVIDIA GPUs", _crossed("hip", "nvidia")),
    SelfTestItem("Triton for AMD GPUs", _crossed("triton", "amd")),
    SelfTestItem("Triton for NVIDIA GPUs", _crossed("triton", "nvidia")),
)


def chosen(only: Sequence[str]) -> tuple[SelfTestItem, ...]:
    """The items with one of these texts in their names, in their own order; all where there is none."""
    for text in only:
        if not any(text in item.name for item in ITEMS):
            names = ", ".join(item.name for item in ITEMS)
            raise UsageError(f"no item with {text!r} in its name; there are: {names}")
    return tuple(item for item in ITEMS if not only or any(text in item.name for text in only))

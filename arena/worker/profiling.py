"""One call under PyTorch's profiler: which kernels ran on the device, how often and for how long."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from arena.platforms.base import Platform
from arena.processes.protocol import DIMENSIONS, MOST_KERNELS, NAME_CHARACTERS
from arena.results.profile import KernelTime
from arena.worker.loaders import Entry

_DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")


class _Details(msgspec.Struct):
    """Details of a launch in a trace, where it has them."""

    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()


class TraceEvent(msgspec.Struct):
    """One event of a Chrome trace as PyTorch writes it; `dur` in microseconds. Other fields are not read."""

    name: str = ""
    cat: str = ""
    dur: float = 0.0
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Trace(msgspec.Struct):
    traceEvents: list[TraceEvent]


def profiled(entry: Entry, index: int, platform: Platform) -> tuple[KernelTime, ...]:
    """Call once on set `index` under the profiler; CUDA's activities are ROCm's too. Longest kernels first.

    The trace is read back from a file, since the profiler's Python objects do not tell launch sizes.
    """
    from torch.profiler import ProfilerActivity, profile

    platform.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        entry.call(index)
        platform.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return kernel_times(path.read_bytes())


def kernel_times(trace: bytes) -> tuple[KernelTime, ...]:
    """The device's work in a Chrome trace, summed by kernel name; copies and fills by the device are among it."""
    events = msgspec.json.decode(trace, type=_Trace).traceEvents
    return _summed(event for event in events if event.cat in _DEVICE_WORK)


def _summed(events: Iterable[TraceEvent]) -> tuple[KernelTime, ...]:
    found: dict[str, KernelTime] = {}
    for event in events:
        before = found.get(event.name)
        if before is None:
            details = msgspec.json.decode(event.args, type=_Details)
            found[event.name] = KernelTime(event.name, 1, event.dur, details.grid, details.block)
        else:
            found[event.name] = replace(before, calls=before.calls + 1, device_us=before.device_us + event.dur)
    longest = sorted(found.values(), key=lambda kernel: -kernel.device_us)[:MOST_KERNELS]
    return tuple(
        replace(
            kernel,
            kernel=kernel.kernel[:NAME_CHARACTERS],
            grid=kernel.grid[:DIMENSIONS],
            block=kernel.block[:DIMENSIONS],
        )
        for kernel in longest
    )

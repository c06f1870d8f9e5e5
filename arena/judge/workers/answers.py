"""Bound every field of every answer of a worker. Used by `worker.py` on all that it reads."""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import replace

from msgspec import structs

from arena.processes import protocol
from arena.processes.printable import printable
from arena.processes.protocol import (
    Done,
    Extension,
    ExtensionWanted,
    Failed,
    FromWorker,
    Kernels,
    Profiled,
    Ready,
)
from arena.results.portability import KernelUse
from arena.results.profile import KernelTime


class Overstep(Exception):
    """An answer is outside of its bounds; the message names the field, its value and what was expected."""


def bounded(answer: FromWorker) -> FromWorker:
    """Return the answer with printable text. Raises `Overstep` where a field is outside of its bounds."""
    match answer:
        case Ready():
            return Ready(_text("isolation", answer.isolation, protocol.DETAIL_CHARACTERS))
        case Done():
            _within("worker_s", answer.worker_s, protocol.LONGEST_S)
            return answer
        case Failed():
            return structs.replace(answer, detail=_text("detail", answer.detail, protocol.DETAIL_CHARACTERS))
        case ExtensionWanted():
            _check_extension(answer.extension)
            return answer
        case Kernels():
            _long("kernels", answer.kernels, protocol.MOST_KERNELS)
            return Kernels(tuple(map(_use, answer.kernels)))
        case Profiled():
            _long("kernels", answer.kernels, protocol.MOST_KERNELS)
            return Profiled(tuple(map(_time, answer.kernels)))


def _check_extension(extension: Extension) -> None:
    _text("name", extension.name, protocol.NAME_CHARACTERS)
    for name in ("cpp", "cuda", "functions", "cpp_flags", "cuda_flags", "link_flags"):
        _long(name, getattr(extension, name), protocol.MOST_TEXTS)


def _use(use: KernelUse) -> KernelUse:
    for name in ("registers", "shared_bytes", "spill_bytes", "scalar_registers"):
        _within(name, getattr(use, name), protocol.LARGEST_COUNT)
    if use.occupancy is not None:
        _within("occupancy", use.occupancy, 1.0)
    return replace(use, kernel=_text("kernel", use.kernel, protocol.NAME_CHARACTERS))


def _time(time: KernelTime) -> KernelTime:
    _within("calls", time.calls, protocol.LARGEST_COUNT)
    _within("device_us", time.device_us, protocol.LONGEST_S * 1e6)
    for name, sizes in (("grid", time.grid), ("block", time.block)):
        _long(name, sizes, protocol.DIMENSIONS)
        for size in sizes:
            _within(name, size, protocol.LARGEST_COUNT)
    return replace(time, kernel=_text("kernel", time.kernel, protocol.NAME_CHARACTERS))


def _text(name: str, text: str, most: int) -> str:
    if len(text) > most:
        raise Overstep(f"{name} has {len(text)} characters, at most {most} are taken")
    return printable(text)


def _long(name: str, items: Sized, most: int) -> None:
    if len(items) > most:
        raise Overstep(f"{name} has {len(items)} entries, at most {most} are taken")


def _within(name: str, value: float, most: float) -> None:
    if not (0 <= value <= most and math.isfinite(value)):
        digits = "a number of many digits" if isinstance(value, int) and value.bit_length() > 64 else f"{value}"
        raise Overstep(f"{name} is {digits}, 0 to {most:g} is taken")

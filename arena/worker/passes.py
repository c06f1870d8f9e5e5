"""Timed passes: one call on each of several sets, as a device graph or one by one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from arena.platforms.base import Platform


class TimedPass(Protocol):
    """A sequence of calls that the judge times."""

    sets: tuple[int, ...]

    def run(self) -> float:
        """Run every call and wait for the device; returns the seconds this process believes it took."""


class PlainPass:
    """Calls issued one after the other: the CPU, and candidates that cannot be captured."""

    def __init__(self, call: Callable[[int], None], platform: Platform, sets: tuple[int, ...]) -> None:
        self.sets = sets
        self._call, self._platform = call, platform

    def run(self) -> float:
        """Issue every call, then wait once."""
        started = time.perf_counter()
        for index in self.sets:
            self._call(index)
        self._platform.synchronize()
        return time.perf_counter() - started


class GraphPass:
    """Calls captured once and replayed: no launch overhead of Python in the measurement."""

    def __init__(self, call: Callable[[int], None], platform: Platform, sets: tuple[int, ...]) -> None:
        import torch

        self.sets = sets
        self._platform = platform
        self._graph = torch.cuda.CUDAGraph()
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        platform.synchronize()
        with torch.cuda.stream(self._stream):
            self._graph.capture_begin()
            try:
                for index in sets:
                    call(index)
            finally:
                self._graph.capture_end()
        self._upload()

    def _upload(self) -> None:
        """Replay once, so that instantiation and upload are not in the first timed pass."""
        self._graph.replay()
        self._platform.synchronize()

    def run(self) -> float:
        """Replay, and wait. To record events beside it would take as long as all the rest, and vary."""
        started = time.perf_counter()
        self._graph.replay()
        self._platform.synchronize()
        return time.perf_counter() - started

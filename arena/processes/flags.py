"""Three counters in memory that the judge shares with one worker of a GPU: by them a pass is timed.

A message takes some ten microseconds, twice as long after a pass of milliseconds, and both vary
(docs/develop/measurement.md). What the other side has stored is seen within one. So both poll around a timed pass: the
worker says `ready`, the judge `go`, the worker `done`, each by the number of the pass. There is no other
answer, so that the worker need not run once more before what its pass has written is read. A candidate can store there
what it likes, as it can send what it likes.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable

from arena.processes.scratch import sealed_memory

_BYTES = 4096
_READY, _GO, _DONE, _SECONDS = 0, 8, 16, 24
"""a line of the processor's cache for each: who polls one is not held up by a store to another"""
_POLLS = 2048
"""between two questions whether to go on waiting: a tenth of a millisecond"""
_LONGEST_WAIT_S = 30.0
"""for the judge's `go`: it is at work all the while, unless it has been killed"""


class Flags:
    """One side's view of them. The judge makes the memory with `new_flags`; the worker gets its descriptor."""

    def __init__(self, file: int) -> None:
        """Map the memory file `file`, and close it."""
        memory = memoryview(mmap.mmap(file, _BYTES))
        self._words, self._numbers = memory.cast("q"), memory.cast("d")
        os.close(file)
        self._passes = 0

    def time_pass(self, timeout_s: float, is_over: Callable[[], bool]) -> tuple[float, float] | None:
        """Have the worker, which was sent a `Pass`, run it.

        Args:
            timeout_s: how long to wait for it, until it is done.
            is_over: asked now and then whether it answers, which it does only where it fails, or has ended.

        Returns:
            When it was told to go and when it was done, by `time.perf_counter`; None where it did not say both.
        """
        self._passes += 1
        deadline = time.perf_counter() + timeout_s
        if not self._await(_READY, deadline, is_over):
            return None
        started = time.perf_counter()
        self._words[_GO] = self._passes
        if not self._await(_DONE, deadline, is_over):
            return None
        return started, time.perf_counter()

    @property
    def worker_s(self) -> float:
        """Return what the worker says of the last pass that was done, whatever number that is."""
        return self._numbers[_SECONDS]

    def run(self, timed_pass: Callable[[], float]) -> None:
        """For the worker: run a pass when the judge says so, and say when it is over and what the pass returned.

        Raises:
            TimeoutError: the judge does not say so.
        """
        self._passes += 1
        self._words[_READY] = self._passes
        if not self._await(_GO, time.perf_counter() + _LONGEST_WAIT_S, lambda: False):
            raise TimeoutError("the judge did not let a pass begin")
        self._numbers[_SECONDS] = timed_pass()
        self._words[_DONE] = self._passes

    def _await(self, flag: int, deadline: float, is_over: Callable[[], bool]) -> bool:
        words, wanted = self._words, self._passes
        while True:
            for _ in range(_POLLS):
                if words[flag] == wanted:
                    return True
            if is_over() or time.perf_counter() > deadline:
                return words[flag] == wanted


def new_flags() -> tuple[Flags, int]:
    """Return new flags, and a descriptor of their memory for the worker: whoever sends it closes it."""
    file = sealed_memory("flags", _BYTES)
    return Flags(os.dup(file)), file

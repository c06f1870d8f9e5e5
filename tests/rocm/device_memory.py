"""Device memory of another process: its buffers at the addresses that its kernels use, mapped or copied here.

Used by `device.py`. A buffer is a file in memory that the driver hands over. Memory of the process's own, which
`hipHostRegister` or a large copy lends to the device, has no file: it is copied for the launches that access it.
"""

from __future__ import annotations

import bisect
import mmap
import os
from functools import cached_property
from pathlib import Path

import numpy as np

from arena.platforms.cpu.amd_isa.memory import ByteArray, DeviceMemory, MemoryRegion

_WORD_BYTES = 4


class SharedRegion(MemoryRegion):
    """A file in memory that the process has mapped at `start`; this process has it somewhere else."""

    def __init__(self, start: int, num_bytes: int, file: int) -> None:
        self.start = self.base = start
        self.end, self.what, self.owner = start + num_bytes, "a buffer", None
        self._mapped = mmap.mmap(file, num_bytes)
        self.bytes = ByteArray(np.frombuffer(self._mapped, np.uint8), self.what)


class LentRegion(MemoryRegion):
    """Memory of the process at `user_address`, which the device knows as `start`."""

    def __init__(self, start: int, num_bytes: int, user_address: int, pid: int) -> None:
        self.start = self.base = start
        self.end, self.what, self.owner = start + num_bytes, "memory lent by the process", None
        self._user_address, self._file = user_address, Path(f"/proc/{pid}/mem")

    @cached_property
    def bytes(self) -> ByteArray:  # type: ignore[override]
        """A copy, made at the first access of a launch."""
        with self._file.open("rb") as file:
            raw = os.pread(file.fileno(), self.end - self.start, self._user_address)
        held = np.frombuffer(bytearray(raw), np.uint8)
        self._before = held.copy()
        return ByteArray(held, self.what)

    def give_back(self) -> None:
        """Write the words that a launch has changed, and forget the copy."""
        held = self.__dict__.pop("bytes", None)
        if held is None:
            return
        changed = np.nonzero(held.raw.view(np.uint32) != self._before.view(np.uint32))[0]
        if not len(changed):
            return
        runs = np.split(changed, np.nonzero(np.diff(changed) > 1)[0] + 1)
        with self._file.open("r+b", buffering=0) as file:
            for run in runs:
                first, last = int(run[0]) * _WORD_BYTES, int(run[-1] + 1) * _WORD_BYTES
                os.pwrite(file.fileno(), held.raw[first:last].tobytes(), self._user_address + first)


class ProcessMemory(DeviceMemory):
    """The memory that one process shares with the device."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._pid = pid
        self._start_of: dict[int, int] = {}

    def share(self, handle: int, start: int, num_bytes: int, file: int) -> None:
        """Map a buffer's file. Raises `ValueError` where other memory of the process lies there."""
        self._place(handle, SharedRegion(start, num_bytes, file))

    def lend(self, handle: int, start: int, num_bytes: int, user_address: int) -> None:
        """Take note of memory without a file. Raises `ValueError` where other memory of the process lies there."""
        self._place(handle, LentRegion(start, num_bytes, user_address, self._pid))

    def unmap(self, handle: int) -> None:
        """Forget a buffer: kernels that access it from here on fault."""
        self.remove(self._start_of.pop(handle))

    def give_back(self) -> None:
        """End a launch: memory that was copied for it is written back."""
        for region in self._regions:
            if isinstance(region, LentRegion):
                region.give_back()

    def window(self, address: int, num_bytes: int) -> bytes:
        """Return at most so many bytes from an address to the end of its buffer; none where there is no buffer."""
        region = self._at(address)
        if region is None or address >= region.end:
            return b""
        first = address - region.base
        return bytes(region.bytes.raw[first : min(first + num_bytes, region.end - region.base)])

    def _place(self, handle: int, region: MemoryRegion) -> None:
        place = bisect.bisect(self._starts, region.start)
        before = self._regions[place - 1] if place else None
        after = self._regions[place] if place < len(self._regions) else None
        if (before and before.end > region.start) or (after and after.start < region.end):
            raise ValueError(f"{region.what} at {region.start:#x} overlaps other memory of the process")
        self._starts.insert(place, region.start)
        self._regions.insert(place, region)
        self._start_of[handle] = region.start

"""Device memory with bounds: registered regions of this process, byte arrays, and per-lane gathers and scatters.

ISA guide: "Vector Memory Operations", "Data Share Operations". A device address is the address of the byte in
this process. Every access of every lane must lie in one registered region; anything else is a `MachineFault`.
"""

from __future__ import annotations

import bisect
import ctypes
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.faults import MachineFault, NotModelled

Array = Any
"""a NumPy array; its dtype and shape depend on the instruction"""
_ALIGN = 16
NOT_PROVIDED = 0x00F2_0000
"""high half of pointers to what a runtime provides and this one does not: queues, buffers for printing, heaps"""


class ByteArray:
    """Bytes that can be gathered and scattered as 8, 16 or 32 bits; `length` bytes are in bounds."""

    def __init__(self, raw: Array, what: str) -> None:
        """`raw`: uint8, its size a multiple of 4, its start aligned to 4."""
        self.raw, self.what = raw, what
        self._views = {1: raw, 2: raw.view(np.uint16), 4: raw.view(np.uint32)}

    def gather(self, index: Array, size: int) -> Array:
        """Return the unsigned integers of `size` bytes (1, 2, 4) that start at the byte indices `index`."""
        if size == 1 or not (index & (size - 1)).any():
            return self._views[size][index >> (size.bit_length() - 1)]
        found = self.raw[index].astype(np.uint32)
        for byte in range(1, size):
            found |= self.raw[index + byte].astype(np.uint32) << np.uint32(8 * byte)
        return found.astype(self._views[size].dtype)

    def scatter(self, index: Array, size: int, values: Array) -> None:
        """Write the low `size` bytes of each value; where indices repeat, the last one stays."""
        if size == 1 or not (index & (size - 1)).any():
            view = self._views[size]
            view[index >> (size.bit_length() - 1)] = values.astype(view.dtype, copy=False)
            return
        for byte in range(size):
            self.raw[index + byte] = (values >> (8 * byte)).astype(np.uint8)


class MemoryRegion:
    """Memory that kernels may access: `[start, end)` of this process's address space."""

    def __init__(self, start: int, num_bytes: int, what: str, owner: object = None) -> None:
        self.start, self.end, self.what = start, start + num_bytes, what
        self.owner = owner
        self.base = start - start % _ALIGN
        held = (ctypes.c_uint8 * (-(-(self.end - self.base) // 4) * 4)).from_address(self.base)
        self.bytes = ByteArray(np.frombuffer(memoryview(held), np.uint8), what)


class DeviceMemory:
    """All regions of one device."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._regions: list[MemoryRegion] = []

    def add(self, start: int, num_bytes: int, what: str, owner: object = None) -> None:
        """Register memory; `owner` is kept alive. Empty regions are left out. Raises `ValueError` for an overlap."""
        if num_bytes <= 0:
            return
        place = bisect.bisect(self._starts, start)
        before = self._regions[place - 1] if place else None
        after = self._regions[place] if place < len(self._regions) else None
        if (before and before.end > start) or (after and after.start < start + num_bytes):
            raise ValueError(f"{what} overlaps other memory of the device")
        self._starts.insert(place, start)
        self._regions.insert(place, MemoryRegion(start, num_bytes, what, owner))

    def add_array(self, array: Array, what: str) -> int:
        """Register a contiguous NumPy array and return its address."""
        self.add(array.ctypes.data, array.nbytes, what, array)
        return int(array.ctypes.data)

    def remove(self, start: int) -> bool:
        """Forget the region that begins at `start`; False where there is none."""
        place = bisect.bisect_left(self._starts, start)
        if place == len(self._starts) or self._starts[place] != start:
            return False
        del self._starts[place], self._regions[place]
        return True

    def holds(self, address: int) -> bool:
        """Return whether a region begins at the address or holds it."""
        region = self._at(address)
        return region is not None and address < region.end

    def spans(self, address: Array, size: int) -> list[tuple[MemoryRegion, Array]]:
        """Return the regions that lanes access, each with the lanes, after the bounds check."""
        region = self._only(address, size)
        return [(region, slice(None))] if region is not None else self._each(address, size)

    def block(self, address: int, num_bytes: int) -> bytes:
        """Return bytes for a scalar load, which may reach over the end of a region within 64 bytes: zeros there."""
        region = self._at(address)
        if region is None or address >= region.end:
            raise self._fault(address, num_bytes, "a scalar load")
        if address + num_bytes > region.end and address // 64 != (address + num_bytes - 1) // 64:
            raise self._fault(address, num_bytes, "a scalar load")
        inside = min(num_bytes, region.end - address)
        first = address - region.base
        return bytes(region.bytes.raw[first : first + inside]) + bytes(num_bytes - inside)

    def _at(self, address: int) -> MemoryRegion | None:
        place = bisect.bisect(self._starts, address)
        return self._regions[place - 1] if place else None

    def _only(self, address: Array, num_bytes: int) -> MemoryRegion | None:
        """The one region that holds every access, where there is one."""
        low, high = int(address.min()), int(address.max())
        region = self._at(low)
        return region if region is not None and high + num_bytes <= region.end else None

    def _each(self, address: Array, num_bytes: int) -> list[tuple[MemoryRegion, Array]]:
        places = np.searchsorted(np.array(self._starts, np.uint64), address, side="right") - 1
        found = []
        for place in np.unique(places):
            lanes = np.nonzero(places == place)[0]
            region = self._regions[place] if place >= 0 else None
            last = int(address[lanes].max())
            if region is None or last + num_bytes > region.end:
                raise self._fault(last, num_bytes, f"{len(lanes)} lanes")
            found.append((region, lanes))
        return found

    def _fault(self, address: int, num_bytes: int, who: str) -> Exception:
        if address >> 32 == NOT_PROVIDED:
            return NotModelled("the code uses a service of the runtime (printing, device-side allocation, queues)")
        region = self._at(address)
        near = f": {address + num_bytes - region.end} bytes past the end of {region.what}" if region else ""
        return MachineFault(f"{who} accessed {num_bytes} bytes at {address:#x}, outside of every buffer{near}")

"""Device memory as the host of a GPU sees it: addresses without any right of access, and a second mapping behind them.

A candidate's tensors carry the first address of a region. Loads and stores of interpreted kernels, and PyTorch's
operators that may copy and fill, are translated to the second, which no tensor of the candidate's leads to.
"""

from __future__ import annotations

import ctypes
import mmap
import signal
import weakref
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from arena.platforms.cpu.triton.internals import Array
from arena.platforms.cpu.triton.launch_order import runs_ends, runs_nothing
from arena.results.messages import message

if TYPE_CHECKING:
    import torch

MOST_TO_HOST = 4096
"""bytes that a call may copy to the host: enough to read a count, too little to have the host compute"""
_NOTHING, _MAYMOVE = 0, 1
_POISON = 0xFF  # NaN, as whatever float it is read, and -1
_TRUE = 1  # another byte is no bool
_FAILED = ctypes.c_void_p(-1).value


class HostAccess(Exception):
    """Host code reads device memory in a way that only the emulation has."""


@dataclass(frozen=True)
class Region:
    """Whole pages of device memory: `first` is its address for candidates, `behind` the same memory in reach."""

    first: int
    num_bytes: int
    behind: int

    def tensor(self, like: torch.Tensor) -> torch.Tensor:
        """The elements of a tensor that lies here, in reach."""
        return _strided(self.behind, self.num_bytes, like, like.data_ptr() - self.first)


@dataclass
class _Memory:
    """The regions of this process, sorted by their first address, and the bytes that the current call copied out."""

    regions: list[Region] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    to_host: int = 0


_memory = _Memory()


def active() -> bool:
    """Return whether this process has device memory at all."""
    return bool(_memory.regions)


def mirror(behind: int, num_bytes: int) -> Region:
    """Give shared memory that is mapped at `behind` (whole pages) a second address without any right of access."""
    whole = -(-num_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
    libc = _libc()
    first = libc.mremap(behind, 0, whole, _MAYMOVE)
    if first == _FAILED or libc.mprotect(first, whole, _NOTHING) != 0:
        raise MemoryError(f"{whole} bytes of device memory cannot be protected: error {ctypes.get_errno()}")
    region = Region(first, whole, behind)
    at = bisect_right(_memory.starts, first)
    _memory.starts.insert(at, first)
    _memory.regions.insert(at, region)
    return region


def forget(region: Region) -> None:
    """Unmap a region's first address; its memory stays."""
    at = _memory.regions.index(region)
    del _memory.regions[at], _memory.starts[at]
    _libc().munmap(region.first, region.num_bytes)


def allocate(num_bytes: int, dtype: torch.dtype) -> torch.Tensor:
    """New device memory as a flat tensor, given back with the last tensor that views it.

    It holds poison: zeros of fresh pages would hide a kernel that reads what nothing has written.
    """
    import torch

    whole = max(1, -(-num_bytes // mmap.PAGESIZE)) * mmap.PAGESIZE
    own = mmap.mmap(-1, whole)  # shared, and anonymous
    region = mirror(_address(own), whole)
    if not runs_nothing() and not runs_ends():  # else it may be as large as a GPU's
        ctypes.memset(region.behind, _TRUE if dtype == torch.bool else _POISON, whole)
    held = (ctypes.c_char * whole).from_address(region.first)
    weakref.finalize(held, _give_back, region, own)
    return torch.frombuffer(held, dtype=dtype)


def find(address: int) -> Region | None:
    """The region that an address lies in."""
    at = bisect_right(_memory.starts, address) - 1
    if at < 0:
        return None
    region = _memory.regions[at]
    return region if address < region.first + region.num_bytes else None


def in_reach(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements at an address that can be read and written; host tensors as they are."""
    region = find(tensor.data_ptr())
    return tensor if region is None or not tensor.numel() else region.tensor(tensor)


def translated(addresses: Array, mask: Array, item_bytes: int) -> Array:
    """Addresses behind those that a kernel uses. Raises `IndexError` where one of them, under `mask`, is no memory."""
    if not _memory.regions:
        return addresses
    wanted = np.broadcast_to(addresses, mask.shape)[mask]
    if not wanted.size:
        return addresses
    low, high = int(wanted.min()), int(wanted.max())
    region = find(low)
    if region is not None and high + item_bytes <= region.first + region.num_bytes:
        return addresses + np.uint64((region.behind - region.first) % 2**64)
    return _translated_each(addresses, mask, item_bytes)


def begin_call() -> None:
    """A call begins: nothing has been copied to the host."""
    _memory.to_host = 0


def count_to_host(num_bytes: int) -> None:
    """Note a copy to the host. Raises `HostAccess` beyond what a call may copy."""
    _memory.to_host += num_bytes
    if _memory.to_host > MOST_TO_HOST:
        raise HostAccess(message("copies_to_cpu", copied=_memory.to_host, allowed=MOST_TO_HOST))


def explain_faults() -> None:
    """From now on, who touches device memory from the host is told so before the process ends."""
    ctypes.pythonapi.PyOS_setsig(signal.SIGSEGV, ctypes.cast(_on_fault, ctypes.c_void_p))


def _translated_each(addresses: Array, mask: Array, item_bytes: int) -> Array:
    starts = np.array(_memory.starts, np.uint64)
    ends = np.array([region.first + region.num_bytes for region in _memory.regions], np.uint64)
    shifts = np.array([(region.behind - region.first) % 2**64 for region in _memory.regions], np.uint64)
    at = np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1
    nearest = np.maximum(at, 0)
    outside = ((at < 0) | (addresses + np.uint64(item_bytes) > ends[nearest])) & mask
    if outside.any():
        raise IndexError(
            f"{int(outside.sum())} elements outside of device memory: a kernel may use its arguments and tensors that "
            "PyTorch has allocated on the device"
        )
    return np.asarray(addresses + shifts[nearest])


def _give_back(region: Region, own: mmap.mmap) -> None:
    forget(region)
    own.close()


def _strided(address: int, num_bytes: int, like: torch.Tensor, offset: int) -> torch.Tensor:
    import torch

    held = (ctypes.c_char * num_bytes).from_address(address)
    flat = torch.frombuffer(held, dtype=like.dtype, offset=offset, count=(num_bytes - offset) // like.element_size())
    return flat.as_strided(like.shape, like.stride(), 0)


def _address(own: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(own))


@ctypes.CFUNCTYPE(None, ctypes.c_int)  # type: ignore[untyped-decorator]
def _on_fault(number: int) -> None:
    """Say what happened, and have the signal end the process, whether an access or somebody's `kill` raised it."""
    import faulthandler
    import os

    os.write(
        2,
        b"Triton on CPU: host code touched memory that it may not; of device memory only Triton kernels and PyTorch's "
        b"copy and fill can. A GPU's is no memory of the host either.\n",
    )
    faulthandler.dump_traceback(all_threads=False)
    ctypes.pythonapi.PyOS_setsig(number, None)
    os.kill(os.getpid(), number)


def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mremap.restype = ctypes.c_void_p
    libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc

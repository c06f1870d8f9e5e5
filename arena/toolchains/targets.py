"""The GPUs that can be compiled for without being there, and what one of their multiprocessors holds.

Sources: CUDA C++ Programming Guide, table of technical specifications per compute capability; AMD's ROCm
documentation, accelerator and GPU hardware specifications; the CDNA and RDNA instruction set guides. An AMD compute
unit (gfx9: four SIMDs of 8 waves, gfx10 and later: two of 16) and an NVIDIA SM are both a multiprocessor here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from arena.errors import UsageError
from arena.model.portability import vendor_of

_KIB = 1024
_REGISTERS_NVIDIA = 65536


@dataclass(frozen=True)
class Multiprocessor:
    """What one arch offers: lanes of a wave, resident waves, shared memory of one block and of all of them."""

    arch: str
    wave_size: int
    max_waves: int
    block_shared_bytes: int
    shared_bytes: int
    simds: int = 1

    @property
    def vendor(self) -> str:
        """`amd` or `nvidia`."""
        return vendor_of(self.arch)


def _cdna(arch: str, lds_kib: int) -> Multiprocessor:
    return Multiprocessor(arch, 64, 32, lds_kib * _KIB, lds_kib * _KIB, simds=4)


def _rdna(arch: str) -> Multiprocessor:
    return Multiprocessor(arch, 32, 32, 64 * _KIB, 64 * _KIB, simds=2)


def _nvidia(arch: str, warps: int, block_kib: int, all_kib: int) -> Multiprocessor:
    return Multiprocessor(arch, 32, warps, block_kib * _KIB, all_kib * _KIB)


_KNOWN = (
    _cdna("gfx908", 64),
    _cdna("gfx90a", 64),
    _cdna("gfx942", 64),
    _cdna("gfx950", 160),
    _rdna("gfx1030"),
    _rdna("gfx1100"),
    _rdna("gfx1101"),
    _rdna("gfx1151"),
    _rdna("gfx1200"),
    _rdna("gfx1201"),
    _nvidia("sm_80", 64, 163, 164),
    _nvidia("sm_86", 48, 99, 100),
    _nvidia("sm_89", 48, 99, 100),
    _nvidia("sm_90", 64, 227, 228),
    _nvidia("sm_100", 64, 227, 228),
    _nvidia("sm_120", 48, 99, 100),
)
TARGETS = {facts.arch: facts for facts in _KNOWN}


def parse(names: Iterable[str]) -> tuple[str, ...]:
    """Arch names from lists with commas, in order, without repetition; raises `UsageError` for an unknown one."""
    found: dict[str, None] = {}
    for name in (part.strip() for text in names for part in text.split(",")):
        if name and name not in TARGETS:
            near = difflib.get_close_matches(name, TARGETS, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"unknown target {name!r}{hint} Known: {', '.join(TARGETS)}")
        if name:
            found[name] = None
    return tuple(found)


def occupancy(arch: str, *, waves: int, shared_bytes: int = 0, block_waves: int | None = None) -> float:
    """The share of a multiprocessor's waves that can be resident, of which registers admit `waves`.

    Shared memory bounds it only where the block's size is known, in waves.
    """
    facts = TARGETS[arch]
    resident = min(waves, facts.max_waves)
    if block_waves is not None and shared_bytes:
        blocks = facts.shared_bytes // shared_bytes
        resident = min(resident, max(1, blocks) * block_waves)
    return resident / facts.max_waves


def waves_by_registers(registers: int) -> int:
    """Warps that an NVIDIA SM's 65536 registers admit: a warp's are given out in units of 256, to four schedulers."""
    per_warp = -(-max(registers, 1) * 32 // 256) * 256
    return _REGISTERS_NVIDIA // per_warp // 4 * 4

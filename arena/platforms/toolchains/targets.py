"""The GPUs that can be compiled for without being there, and what one of their multiprocessors holds.

Sources: CUDA C++ Programming Guide, technical specifications per compute capability; AMD's ROCm documentation,
accelerator and GPU hardware specifications; the CDNA and RDNA instruction set guides; for registers, LLVM's AMDGPU
usage guide. A multiprocessor here is an NVIDIA SM or an AMD compute unit, both made of SIMDs with a register file each.
"""

from __future__ import annotations

from dataclasses import dataclass

from arena.results.portability import vendor_of

_KIB = 1024


@dataclass(frozen=True)
class Multiprocessor:
    """What one arch offers.

    `count`: multiprocessors of the arch's largest product. `waves`: resident waves of one SIMD. `registers`: 32-bit
    registers of a SIMD for each lane, handed out to a wave in multiples of `granule`. Shared memory in bytes.
    """

    arch: str
    count: int
    wave_size: int
    simds: int
    waves: int
    registers: int
    granule: int
    block_shared_bytes: int
    shared_bytes: int

    @property
    def vendor(self) -> str:
        """`amd` or `nvidia`."""
        return vendor_of(self.arch)

    def occupancy(self, registers: int, shared_bytes: int = 0, block_waves: int | None = None) -> float:
        """The share of its waves that can be resident: bounded by registers per thread, and by shared memory per block.

        Shared memory bounds it only where the block's size is known, in waves.
        """
        taken = -(-max(registers, 1) // self.granule) * self.granule
        resident = self.simds * min(self.waves, self.registers // taken)
        if block_waves is not None and shared_bytes:
            resident = min(resident, self.shared_bytes // shared_bytes * block_waves)
        return resident / (self.simds * self.waves)


def _cdna(arch: str, count: int, lds_kib: int) -> Multiprocessor:
    return Multiprocessor(arch, count, 64, 4, 8, 512, 8, lds_kib * _KIB, lds_kib * _KIB)


def _rdna(arch: str, count: int, registers: int, granule: int) -> Multiprocessor:
    return Multiprocessor(arch, count, 32, 2, 16, registers, granule, 64 * _KIB, 64 * _KIB)


def _nvidia(arch: str, count: int, waves: int, block_kib: int, all_kib: int) -> Multiprocessor:
    return Multiprocessor(arch, count, 32, 4, waves, 512, 8, block_kib * _KIB, all_kib * _KIB)


_KNOWN = (
    _cdna("gfx90a", 110, 64),
    _cdna("gfx942", 304, 64),
    _cdna("gfx950", 256, 160),
    _rdna("gfx1100", 96, 1536, 24),
    _rdna("gfx1101", 60, 1536, 24),
    _rdna("gfx1151", 40, 1536, 24),
    _rdna("gfx1200", 32, 1536, 24),
    _rdna("gfx1201", 64, 1536, 24),
    _nvidia("sm_80", 108, 16, 163, 164),
    _nvidia("sm_86", 84, 12, 99, 100),
    _nvidia("sm_89", 142, 12, 99, 100),
    _nvidia("sm_90", 132, 16, 227, 228),
    _nvidia("sm_100", 148, 16, 227, 228),
    _nvidia("sm_120", 188, 12, 99, 100),
)
TARGETS = {facts.arch: facts for facts in _KNOWN}

"""The registers of the waves that are at the same instruction: NumPy arrays over (wave, lane).

ISA guide: "Kernel State". A wave has 64 lanes. Instructions read all lanes of all waves before they write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.memory import ByteArray, DeviceMemory

Array = Any
LANES = 64
SGPRS = 128
VCC, M0, EXEC = 106, 124, 126
FLAT_SCRATCH, XNACK_MASK, TRAP = 102, 104, 108
NAMED = {
    "flat_scratch_lo": FLAT_SCRATCH,
    "flat_scratch_hi": FLAT_SCRATCH + 1,
    "xnack_mask_lo": XNACK_MASK,
    "xnack_mask_hi": XNACK_MASK + 1,
    "vcc_lo": VCC,
    "vcc_hi": VCC + 1,
    "m0": M0,
    "exec_lo": EXEC,
    "exec_hi": EXEC + 1,
}
PAIRS = {"flat_scratch": FLAT_SCRATCH, "xnack_mask": XNACK_MASK, "vcc": VCC, "exec": EXEC}
SHARED_APERTURE, PRIVATE_APERTURE = 0x00F0_0000, 0x00F1_0000
"""high halves of flat addresses that mean LDS and scratch; no process has memory there"""


@dataclass
class BatchState:
    """Memory that all waves of a batch of workgroups share."""

    memory: DeviceMemory
    lds: ByteArray
    lds_bytes: int
    """bytes that a workgroup has; its part of `lds` begins at its index times `lds_pitch`"""
    lds_pitch: int
    scratch: ByteArray
    scratch_bytes: int
    """bytes that a lane has"""
    base: int
    """address of the loaded code object"""
    archs: str = "gfx942"


class Waves:
    """A group of waves at one instruction."""

    def __init__(self, machine: BatchState, scalars: Array, vectors: Array, scc: Array, workgroup: Array, slot: Array):
        """Take the arrays over.

        Args:
            machine: memory that is common to all waves.
            scalars: uint32 [waves, 128], by the number that encodings use for scalar registers.
            vectors: uint32 [registers, waves, 64]; accumulation registers follow the others.
            scc: bool [waves].
            workgroup: int64 [waves], index of the workgroup in this batch.
            slot: int64 [waves], index of the wave in this batch.
        """
        self.machine = machine
        self.s, self.v = scalars, vectors
        self.scc, self.workgroup, self.slot = scc, workgroup, slot
        self.pc = 0
        """address of the next instruction"""
        self.rank = 0
        """groups of a lower rank run first, and only groups of one rank meet"""
        self._views()

    def _views(self) -> None:
        self.count = len(self.s)
        self.si, self.sf = self.s.view(np.int32), self.s.view(np.float32)
        self.s64, self.sd = self.s.view(np.uint64), self.s.view(np.float64)
        self.sh = self.s.view(np.float16)
        self.vi, self.vf = self.v.view(np.int32), self.v.view(np.float32)
        halves = (*self.v.shape, 2)
        self.vh = self.v.view(np.float16).reshape(halves)
        self.vw = self.v.view(np.uint16).reshape(halves)
        self.exec_changed()

    def exec_changed(self) -> None:
        """Derive the lane mask from EXEC; whoever writes EXEC calls this."""
        bits = self.s64[:, EXEC // 2]
        self.mask = lanes_of(bits)
        self.full = bool((bits == np.uint64(0xFFFFFFFFFFFFFFFF)).all())

    def take(self, chosen: Array) -> Waves:
        """Return a group with copies of the chosen waves."""
        part = Waves(
            self.machine,
            self.s[chosen],
            np.take(self.v, chosen, axis=1),
            self.scc[chosen],
            self.workgroup[chosen],
            self.slot[chosen],
        )
        part.pc, part.rank = self.pc, self.rank
        return part


def merge(groups: list[Waves]) -> Waves:
    """Return one group of all waves, in the order of their slots."""
    slots = np.concatenate([group.slot for group in groups])
    order = np.argsort(slots)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    registers, _, lanes = groups[0].v.shape
    vectors = np.empty((registers, len(order), lanes), np.uint32)
    first = 0
    for group in groups:  # one copy: registers are most of what a wave has
        vectors[:, place[first : first + group.count]] = group.v
        first += group.count
    merged = Waves(
        groups[0].machine,
        np.concatenate([group.s for group in groups])[order],
        vectors,
        np.concatenate([group.scc for group in groups])[order],
        np.concatenate([group.workgroup for group in groups])[order],
        slots[order],
    )
    merged.pc, merged.rank = groups[0].pc, groups[0].rank
    return merged


def lanes_of(bits: Array) -> Array:
    """Return bool [waves, 64] from uint64 [waves]."""
    octets = np.ascontiguousarray(bits).view(np.uint8).reshape(-1, 8)
    return np.unpackbits(octets, axis=1, bitorder="little").view(np.bool_)


def bits_of(lanes: Array) -> Array:
    """Return uint64 [waves] from bool [waves, 64]."""
    return np.packbits(lanes, axis=1, bitorder="little").view(np.uint64)[:, 0]

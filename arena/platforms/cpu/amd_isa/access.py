"""Addresses of vector memory instructions: global, flat, scratch, buffer and LDS, each with its bounds check.

ISA guide: "Vector Memory Operations", "Flat Memory Instructions", "Data Share Operations". An `Access`
says for a group of waves which lanes take part and where.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.faults import MachineFault, NotModelled
from arena.platforms.cpu.amd_isa.memory import ByteArray
from arena.platforms.cpu.amd_isa.operands import registers, scalar_reader, vector_reader
from arena.platforms.cpu.amd_isa.valu import Kernel
from arena.platforms.cpu.amd_isa.waves import LANES, PRIVATE_APERTURE, SHARED_APERTURE, Waves

Array = Any
_U32, _U64, _I64 = np.uint32, np.uint64, np.int64
CACHE = {"sc0", "sc1", "nt", "glc", "slc", "dlc"}
"""cache policies: memory is coherent here"""
Part = tuple[ByteArray, Array, Array]
"""bytes, the index into them of each lane, and which of the accessing lanes these are (an index or a slice)"""


@dataclass(frozen=True)
class Access:
    """The lanes and the memory of one access."""

    mask: Callable[[Waves], Array]
    """lanes that access memory: bool [waves, 64]"""
    parts: Callable[[Waves, Array], list[Part]]
    """given that mask, the parts of memory that these lanes access, in the order of `address[mask]`"""


def _full_address(text: str, kernel: Kernel) -> Callable[[Waves], Array]:
    return vector_reader(text, "u64", kernel.accumulators)


def _exec(g: Waves) -> Array:
    return g.mask


def _global_parts(g: Waves, address: Array, num_bytes: int) -> list[Part]:
    return [
        (region.bytes, (address[lanes] - _U64(region.base)).astype(_I64), lanes)
        for region, lanes in g.machine.memory.spans(address, num_bytes)
    ]


def _lane_numbers(g: Waves, mask: Array) -> tuple[Array, Array]:
    """Return workgroup and lane in the batch of every lane of the mask."""
    slots = (g.slot[:, None] * LANES + np.arange(LANES))[mask]
    return np.broadcast_to(g.workgroup[:, None], mask.shape)[mask], slots


def lds_index(g: Waves, mask: Array, offset: Array, num_bytes: int) -> Array:
    """Return the index into the LDS of all workgroups. Raises `MachineFault` beyond the workgroup's allocation."""
    if offset.size and int(offset.max()) + num_bytes > g.machine.lds_bytes:
        said = f"{num_bytes} bytes at {int(offset.max())} of LDS accessed, the workgroup has {g.machine.lds_bytes}"
        raise MachineFault(f"LDS overflow: {said}")
    return _lane_numbers(g, mask)[0] * g.machine.lds_pitch + offset


def _scratch_index(g: Waves, mask: Array, offset: Array, num_bytes: int) -> Array:
    if offset.size and (int(offset.max()) + num_bytes > g.machine.scratch_bytes or int(offset.min()) < 0):
        said = f"{num_bytes} bytes at {int(offset.max())} of scratch accessed, a lane has {g.machine.scratch_bytes}"
        raise MachineFault(said)
    return _lane_numbers(g, mask)[1] * g.machine.scratch_bytes + offset


def global_place(ins: Instruction, address: str, base: str, num_bytes: int, kernel: Kernel) -> Access:
    """GLOBAL instructions: a 64-bit address, or a scalar base with a 32-bit offset."""
    offset = _U64(ins.number("offset") & (1 << 64) - 1)
    if base == "off":
        read = _full_address(address, kernel)
    else:
        first, second = vector_reader(address, "u32", kernel.accumulators), scalar_reader(base, "u64")

        def read(g: Waves) -> Array:
            return second(g)[:, None] + np.broadcast_to(first(g), (g.count, LANES)).astype(_U64)

    return Access(_exec, lambda g, mask: _global_parts(g, read(g)[mask] + offset, num_bytes))


def flat_place(ins: Instruction, address: str, num_bytes: int, kernel: Kernel) -> Access:
    """FLAT instructions: the high half of the address says whether it is LDS, scratch or global memory."""
    offset, read = _U64(ins.number("offset") & (1 << 64) - 1), _full_address(address, kernel)

    def parts(g: Waves, mask: Array) -> list[Part]:
        places = read(g)[mask] + offset
        high = places >> _U64(32)
        found: list[Part] = []
        spaces = ((SHARED_APERTURE, g.machine.lds, lds_index), (PRIVATE_APERTURE, g.machine.scratch, _scratch_index))
        for aperture, held, index in spaces:
            lanes = np.nonzero(high == aperture)[0]
            if len(lanes):
                local = np.zeros(len(places), _I64)
                local[lanes] = (places[lanes] & _U64(0xFFFFFFFF)).astype(_I64)
                found.append((held, index(g, mask, local, num_bytes)[lanes], lanes))
        rest = np.nonzero((high != SHARED_APERTURE) & (high != PRIVATE_APERTURE))[0]
        if len(rest) == len(places):
            return _global_parts(g, places, num_bytes)
        if len(rest):
            inner = _global_parts(g, places[rest], num_bytes)
            found += [(held, index, rest[lanes]) for held, index, lanes in inner]
        return found

    return Access(_exec, parts)


def scratch_place(ins: Instruction, address: str, base: str, num_bytes: int, kernel: Kernel) -> Access:
    """SCRATCH instructions: an offset into the lane's own memory."""
    offset = ins.number("offset")
    first = None if address == "off" else vector_reader(address, "i32", kernel.accumulators)
    second = None if base == "off" else scalar_reader(base, "i32")

    def parts(g: Waves, mask: Array) -> list[Part]:
        place = np.full((g.count, LANES), offset, _I64)
        if first is not None:
            place = place + first(g)
        if second is not None:
            place = place + second(g)[:, None]
        return [(g.machine.scratch, _scratch_index(g, mask, place[mask], num_bytes), slice(None))]

    return Access(_exec, parts)


def lds_place(ins: Instruction, address: str, offset: int, num_bytes: int, kernel: Kernel) -> Access:
    """DS instructions: a byte offset into the workgroup's LDS."""
    read = vector_reader(address, "u32", kernel.accumulators)

    def parts(g: Waves, mask: Array) -> list[Part]:
        place = np.broadcast_to(read(g), (g.count, LANES))[mask].astype(_I64) + offset
        return [(g.machine.lds, lds_index(g, mask, place, num_bytes), slice(None))]

    return Access(_exec, parts)


def buffer_place(ins: Instruction, texts: tuple[str, ...], num_bytes: int, kernel: Kernel) -> Access:
    """Buffer instructions: a resource descriptor, whose range check leaves lanes out.

    `texts`: vector address, descriptor, scalar offset. Raw buffers are modelled, structured ones are not.
    """
    vector, resource, scalar = texts
    found = registers(resource, 0)
    if found is None or found.count != 4 or "idxen" in ins.modifiers:
        raise NotModelled(f"buffer addressing of {ins.text}")
    first = found.first
    read = vector_reader(vector, "u32", kernel.accumulators) if "offen" in ins.modifiers else None
    more, fixed = scalar_reader(scalar, "u32"), ins.number("offset")

    def offsets(g: Waves) -> Array:
        moving = np.zeros((g.count, LANES), _I64) if read is None else np.broadcast_to(read(g), (g.count, LANES))
        return moving.astype(_I64) + fixed

    def mask(g: Waves) -> Array:
        if ((g.s[:, first + 1] >> _U32(16)) & _U32(0x3FFF)).any() or (g.s[:, first + 3] >> _U32(31)).any():
            raise NotModelled("structured or swizzled buffer")
        return g.mask & (offsets(g) + num_bytes <= g.s[:, first + 2].astype(_I64)[:, None])

    def parts(g: Waves, lanes: Array) -> list[Part]:
        low, high = g.s[:, first].astype(_U64), (g.s[:, first + 1] & _U32(0xFFFF)).astype(_U64)
        base = (low | high << _U64(32)) + more(g)
        return _global_parts(g, (base[:, None] + offsets(g).astype(_U64))[lanes], num_bytes)

    return Access(mask, parts)

"""Movement within registers: DPP between lanes, SDWA within a lane.

ISA guide: "Data parallel primitives", control values of `DPP_CTRL`, "Sub-dword addressing".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.operands import DTYPES, Reader, Writer, registers, vector_reader
from arena.platforms.cpu.amd_isa.waves import LANES, Waves

Array = Any
DPP = {
    *("quad_perm", "row_shl", "row_shr", "row_ror", "row_mirror", "row_half_mirror", "row_bcast", "row_newbcast"),
    *("wave_shl", "wave_shr", "wave_rol", "wave_ror"),
}
_LANE = np.arange(LANES)
_ROW, _IN_ROW = _LANE & ~15, _LANE & 15
_SELECTIONS = {"BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8)}
_SELECTIONS |= {"WORD_0": (0, 16), "WORD_1": (16, 16), "DWORD": (0, 32)}


def source_lanes(control: str, value: str) -> tuple[Array, Array]:
    """Return for each lane the lane that it reads, and whether there is such a lane."""
    if control == "quad_perm":
        chosen = np.array([int(part) for part in value.strip("[]").split(",")])
        return (_LANE & ~3) + chosen[_LANE & 3], np.ones(LANES, bool)
    by = int(value) if value else 0
    everywhere = np.ones(LANES, bool)
    within = {
        "row_shl": _IN_ROW + by,
        "row_shr": _IN_ROW - by,
        "row_ror": (_IN_ROW - by) % 16,
        "row_mirror": 15 - _IN_ROW,
        "row_half_mirror": (_IN_ROW & 8) + 7 - (_IN_ROW & 7),
        "row_newbcast": np.full(LANES, by),
    }
    if control in within:
        place = within[control]
        valid = (place >= 0) & (place < 16)
        return _ROW + np.clip(place, 0, 15), valid
    across = {
        "wave_shl": (_LANE + 1, _LANE + 1 < LANES),
        "wave_shr": (_LANE - 1, _LANE - 1 >= 0),
        "wave_rol": ((_LANE + 1) % LANES, everywhere),
        "wave_ror": ((_LANE - 1) % LANES, everywhere),
    }
    if control in across:
        place, valid = across[control]
        return np.clip(place, 0, LANES - 1), valid
    if control == "row_bcast" and by in (15, 31):
        step = by + 1  # lane 15 (31) of each row of 16 (32) lanes goes to all lanes of the next one
        place = _LANE // step * step - 1
        return np.maximum(place, 0), place >= 0
    raise NotModelled(f"DPP control {control}:{value}")


def mover(ins: Instruction) -> Callable[[Waves, Array], tuple[Array, Array]]:
    """Return `move(g, value)`: the first source as each lane receives it, and the lanes that are written."""
    control = next((key for key in ins.modifiers if key in DPP), None)
    if control is None:
        raise NotModelled(f"DPP without a control: {ins.text}")
    place, valid = source_lanes(control, ins.modifiers[control])
    zero_fills = ins.number("bound_ctrl", -1) >= 0  # older LLVM prints 0 for the bit that is set
    rows, banks = ins.number("row_mask", 15), ins.number("bank_mask", 15)
    enabled = (rows >> (_LANE // 16) & 1 & (banks >> (_LANE // 4 % 4))).astype(bool)

    def move(g: Waves, value: Array) -> tuple[Array, Array]:
        whole = np.broadcast_to(value, (g.count, LANES))
        reads = valid & g.mask[:, place]
        moved = np.where(reads, whole[:, place], whole.dtype.type(0))
        written = g.mask & enabled
        return moved, written if zero_fills else written & reads

    return move


def selected(text: str, kind: str, selection: str, extended: bool, accumulators: int) -> Reader:
    """Return a reader of the bits that an SDWA source selects, zero- or sign-extended."""
    shift, bits = _SELECTIONS[selection]
    if kind[1:] == "64" or (kind[0] == "f" and bits < int(kind[1:])):
        raise NotModelled(f"SDWA {selection} of a source of kind {kind}")
    read = vector_reader(text, "u32", accumulators)
    dtype = DTYPES[kind]
    narrow: Any = {8: np.int8, 16: np.int16, 32: np.int32}[bits] if extended else None

    def extract(g: Waves) -> Array:
        value = np.asarray(read(g)) >> np.uint32(shift)
        if bits < 32:
            value = value & np.uint32((1 << bits) - 1)
        if narrow is not None:
            value = value.astype(narrow).astype(np.int32).view(np.uint32)
        return value.astype(np.uint16).view(dtype) if kind[1:] == "16" else value.view(dtype)

    return extract


def placed(ins: Instruction, kind: str, accumulators: int) -> Writer:
    """Return the writer of an SDWA destination."""
    shift, bits = _SELECTIONS[ins.modifiers.get("dst_sel", "DWORD")]
    unused = ins.modifiers.get("dst_unused", "UNUSED_PAD")
    found = registers(ins.operands[0], accumulators)
    if found is None or found.file != "v" or kind[1:] == "64" or (unused == "UNUSED_SEXT" and bits < 32):
        raise NotModelled(f"SDWA destination of {ins.text}")
    r, ones = found.first, (1 << bits) - 1 << shift

    def write(g: Waves, value: Any, mask: Array | None = None) -> None:
        raw = np.asarray(value)
        raw = (raw.view(np.uint16) if raw.itemsize == 2 else raw.view(np.uint32)).astype(np.uint32)
        placed_bits = (raw << np.uint32(shift)) & np.uint32(ones)
        if unused == "UNUSED_PRESERVE":
            placed_bits = placed_bits | (g.v[r] & np.uint32(~ones & 0xFFFFFFFF))
        np.copyto(g.v[r], placed_bits, where=g.mask if mask is None else mask)

    return write

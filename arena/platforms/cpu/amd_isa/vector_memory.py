"""Loads and stores of vector memory and LDS, and the lane exchanges that go through the LDS hardware.

ISA guide: "LDS & GDS", "MUBUF", "FLAT, Scratch and Global Instructions".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from arena.platforms.cpu.amd_isa import access
from arena.platforms.cpu.amd_isa.access import CACHE, Access
from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.operands import registers, vector_reader, vector_writer
from arena.platforms.cpu.amd_isa.valu import Kernel, Step
from arena.platforms.cpu.amd_isa.waves import LANES, M0, Waves

Array = Any
Builder = Callable[[Instruction, Kernel], Step]
_U = np.uint32


class Item(NamedTuple):
    """Data of one lane: `words` integers of `size` bytes, and their place in the register."""

    size: int
    words: int = 1
    signed: bool = False
    half: int | None = None
    """0 or 1: only this half of the register takes part"""


_LOADS = {
    "ubyte": Item(1),
    "sbyte": Item(1, 1, True),
    "ushort": Item(2),
    "sshort": Item(2, 1, True),
    "dword": Item(4),
    "dwordx2": Item(4, 2),
    "dwordx3": Item(4, 3),
    "dwordx4": Item(4, 4),
    "ubyte_d16": Item(1, 1, False, 0),
    "ubyte_d16_hi": Item(1, 1, False, 1),
    "sbyte_d16": Item(1, 1, True, 0),
    "sbyte_d16_hi": Item(1, 1, True, 1),
    "short_d16": Item(2, 1, False, 0),
    "short_d16_hi": Item(2, 1, False, 1),
}
_STORES = {
    "byte": Item(1),
    "byte_d16_hi": Item(1, 1, False, 1),
    "short": Item(2),
    "short_d16_hi": Item(2, 1, False, 1),
    "dword": Item(4),
    "dwordx2": Item(4, 2),
    "dwordx3": Item(4, 3),
    "dwordx4": Item(4, 4),
}
_LDS_READS = {
    "u8": _LOADS["ubyte"],
    "i8": _LOADS["sbyte"],
    "u16": _LOADS["ushort"],
    "i16": _LOADS["sshort"],
    "b32": Item(4),
    "b64": Item(4, 2),
    "b96": Item(4, 3),
    "b128": Item(4, 4),
    "u8_d16": _LOADS["ubyte_d16"],
    "u8_d16_hi": _LOADS["ubyte_d16_hi"],
    "i8_d16": _LOADS["sbyte_d16"],
    "i8_d16_hi": _LOADS["sbyte_d16_hi"],
    "u16_d16": _LOADS["short_d16"],
    "u16_d16_hi": _LOADS["short_d16_hi"],
}
_LDS_WRITES = {
    "b8": Item(1),
    "b8_d16_hi": Item(1, 1, False, 1),
    "b16": Item(2),
    "b16_d16_hi": Item(2, 1, False, 1),
    "b32": Item(4),
    "b64": Item(4, 2),
    "b96": Item(4, 3),
    "b128": Item(4, 4),
}


def _allow(ins: Instruction, *known: str) -> None:
    unknown = ins.modifiers.keys() - CACHE - set(known)
    if unknown:
        raise NotModelled(f"modifier {sorted(unknown)[0]} of {ins.name}: {ins.text}")


def _load(destination: str, place: Access, item: Item, kernel: Kernel, *, zero: bool = False) -> Step:
    """Return the step of a load; with `zero`, active lanes that the range check leaves out become 0."""
    first = _vectors(destination, kernel)

    def step(g: Waves) -> None:
        mask, values = _fetch(g, place, item)
        for n, value in enumerate(values):
            _put(g, first + n, mask, value, item, zero)

    return step


def _vectors(text: str, kernel: Kernel) -> int:
    """Return the number of the first vector register that `text` names."""
    found = registers(text, kernel.accumulators)
    if found is None or found.file != "v":
        raise NotModelled(f"{text} as the data of a memory instruction")
    return found.first


def _fetch(g: Waves, place: Access, item: Item) -> tuple[Array, list[Array]]:
    """Return the lanes that access memory, and what they read there."""
    mask = place.mask(g)
    parts = place.parts(g, mask) if mask.any() else []
    if len(parts) == 1:
        ((held, index, _),) = parts
        return mask, [_extended(held.gather(index + item.size * n, item.size), item) for n in range(item.words)]
    values = [np.zeros(int(mask.sum()), _U) for _ in range(item.words)]
    for held, index, lanes in parts:
        for n, value in enumerate(values):
            value[lanes] = held.gather(index + item.size * n, item.size)
    return mask, [_extended(value, item) for value in values]


def _extended(value: Array, item: Item) -> Array:
    if not item.signed:
        return value
    return value.astype(np.int8 if item.size == 1 else np.int16).astype(np.int32).view(_U)


def _put(g: Waves, register: int, mask: Array, value: Array, item: Item, zero: bool) -> None:
    into = g.v[register] if item.half is None else g.vw[register, ..., item.half]
    if zero:
        into[g.mask & ~mask] = 0
    if len(value) == mask.size:
        into[...] = value.reshape(mask.shape)
    else:
        into[mask] = value


def _store(source: str, place: Access, item: Item, kernel: Kernel) -> Step:
    first, shift = _vectors(source, kernel), _U(16 if item.half else 0)

    def step(g: Waves) -> None:
        mask = place.mask(g)
        if not mask.any():
            return
        for held, index, lanes in place.parts(g, mask):
            for n in range(item.words):
                held.scatter(index + item.size * n, item.size, (g.v[first + n][mask] >> shift)[lanes])

    return step


def _global(item: Item, stores: bool, space: str) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        _allow(ins, "offset")
        texts = ins.operands
        address, data = (texts[0], texts[1]) if stores else (texts[1], texts[0])
        num_bytes = item.size * item.words
        if space == "flat":
            place = access.flat_place(ins, address, num_bytes, kernel)
        elif space == "scratch":
            place = access.scratch_place(ins, address, texts[2], num_bytes, kernel)
        else:
            place = access.global_place(ins, address, texts[2], num_bytes, kernel)
        return _store(data, place, item, kernel) if stores else _load(data, place, item, kernel)

    return build


def _buffer(item: Item, stores: bool) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        _allow(ins, "offset", "offen")
        data, *texts = ins.operands
        place = access.buffer_place(ins, tuple(texts), item.size * item.words, kernel)
        return _store(data, place, item, kernel) if stores else _load(data, place, item, kernel, zero=True)

    return build


def _to_lds(item: Item) -> Builder:
    """Loads from memory straight into LDS: lane n writes at M0 + offset + n times the item."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        _allow(ins, "offset", "offen", "lds")
        num_bytes = item.size * item.words
        if ins.name.startswith("buffer"):
            place = access.buffer_place(ins, ins.operands, num_bytes, kernel)
        else:
            place = access.global_place(ins, ins.operands[0], ins.operands[1], num_bytes, kernel)
        fixed, lane = ins.number("offset"), np.arange(LANES) * num_bytes

        def step(g: Waves) -> None:
            mask, values = _fetch(g, place, item)
            into = ((g.s[:, M0].astype(np.int64) & 0xFFFF) + fixed)[:, None] + lane
            index = access.lds_index(g, g.mask, into[g.mask], num_bytes)
            for n, value in enumerate(values):
                whole = np.zeros((g.count, LANES), _U)
                whole[mask] = value
                g.machine.lds.scatter(index + item.size * n, item.size, whole[g.mask])

        return step

    return build


def _buffer_or_lds(item: Item) -> Builder:
    plain, direct = _buffer(item, False), _to_lds(item)
    return lambda ins, kernel: (direct if "lds" in ins.modifiers else plain)(ins, kernel)


def _lds_read(item: Item) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        _allow(ins, "offset")
        place = access.lds_place(ins, ins.operands[1], ins.number("offset"), item.size * item.words, kernel)
        return _load(ins.operands[0], place, item, kernel)

    return build


def _lds_transposed(size: int) -> Builder:
    """DS_READ_B64_TR (gfx950): 16 lanes load the rows of a tile 16 items wide; each gets a column of it."""
    items = 8 // size
    lane = np.arange(LANES)
    row = np.arange(items)[:, None]
    across = 16 // items  # lanes that hold one row
    source, item = (lane & ~15) + row * across + lane % 16 // items, lane % items

    def build(ins: Instruction, kernel: Kernel) -> Step:
        _allow(ins, "offset")
        place = access.lds_place(ins, ins.operands[1], ins.number("offset"), 8, kernel)
        first = _vectors(ins.operands[0], kernel)

        def step(g: Waves) -> None:
            if not g.full:
                raise NotModelled(f"{ins.name} with lanes that are off")
            _, values = _fetch(g, place, Item(4, 2))
            words = np.stack([value.reshape(g.count, LANES) for value in values], axis=-1)
            loaded = words.view(np.uint16 if size == 2 else np.uint8)  # [waves, lanes, items]
            columns = np.ascontiguousarray(np.moveaxis(loaded[:, source, item], 1, -1)).view(_U)
            g.v[first], g.v[first + 1] = columns[..., 0], columns[..., 1]

        return step

    return build


def _lds_write(item: Item) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        _allow(ins, "offset")
        place = access.lds_place(ins, ins.operands[0], ins.number("offset"), item.size * item.words, kernel)
        return _store(ins.operands[1], place, item, kernel)

    return build


def _two(words: int, stride: int, writes: bool) -> Builder:
    """DS_READ2 and DS_WRITE2: two items at offsets in units of the item, or of 64 items."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        _allow(ins, "offset0", "offset1")
        item, unit = Item(4, words), 4 * words * stride
        address = ins.operands[0] if writes else ins.operands[1]
        places = [access.lds_place(ins, address, ins.number(f"offset{n}") * unit, 4 * words, kernel) for n in (0, 1)]
        if writes:
            steps = [_store(ins.operands[1 + n], places[n], item, kernel) for n in (0, 1)]
            return lambda g: (steps[0](g), steps[1](g))[0]
        first = _vectors(ins.operands[0], kernel)

        def step(g: Waves) -> None:
            fetched = [_fetch(g, place, item) for place in places]
            for number, (mask, values) in enumerate(fetched):
                for n, value in enumerate(values):
                    _put(g, first + words * number + n, mask, value, item, False)

        return step

    return build


def _bpermute(ins: Instruction, kernel: Kernel) -> Step:
    """Each lane reads the lane that its address names; a lane that is off gives 0."""
    _allow(ins, "offset")
    at, data = (vector_reader(text, "u32", kernel.accumulators) for text in ins.operands[1:])
    write, offset = vector_writer(ins.operands[0], "u32", kernel.accumulators), _U(ins.number("offset"))

    def step(g: Waves) -> None:
        lane = np.broadcast_to(((at(g) + offset) >> _U(2)) & _U(63), (g.count, LANES))
        given = np.where(g.mask, data(g), _U(0))
        write(g, np.take_along_axis(given, lane.astype(np.int64), axis=1))

    return step


def _permute(ins: Instruction, kernel: Kernel) -> Step:
    """Each lane sends its value to the lane that its address names; the highest sender wins, nobody's target gets 0."""
    _allow(ins, "offset")
    at, data = (vector_reader(text, "u32", kernel.accumulators) for text in ins.operands[1:])
    write, offset = vector_writer(ins.operands[0], "u32", kernel.accumulators), _U(ins.number("offset"))

    def step(g: Waves) -> None:
        lane = np.broadcast_to(((at(g) + offset) >> _U(2)) & _U(63), (g.count, LANES)).astype(np.int64)
        result = np.zeros((g.count, LANES), _U)
        waves, senders = np.nonzero(g.mask)
        result[waves, lane[waves, senders]] = np.broadcast_to(data(g), (g.count, LANES))[waves, senders]
        write(g, result)

    return step


_SWIZZLE = re.compile(r"^swizzle\((?P<mode>\w+),(?P<rest>.*)\)$")


def swizzle_lanes(text: str) -> Array:
    """Return the lane that each lane reads, from LLVM's text of a DS_SWIZZLE offset."""
    lane = np.arange(LANES)
    found = _SWIZZLE.match(text.replace(" ", ""))
    if found is None:
        raise NotModelled(f"swizzle {text}")
    mode, rest = found["mode"], found["rest"].replace('"', "")
    if mode == "QUAD_PERM":
        return (lane & ~3) + np.array([int(part) for part in rest.split(",")])[lane & 3]
    if mode == "BITMASK_PERM":
        bits = [lane >> (4 - n) & 1 for n in range(5)]
        chosen = [
            {"0": 0 * bit, "1": 0 * bit + 1, "p": bit, "i": 1 - bit}[how] for how, bit in zip(rest, bits, strict=True)
        ]
        return (lane & 32) + sum(bit << (4 - n) for n, bit in enumerate(chosen))
    numbers = [int(part) for part in rest.split(",")]
    if mode == "SWAP":
        return lane ^ numbers[0]
    if mode == "REVERSE":
        return lane ^ (numbers[0] - 1)
    if mode == "BROADCAST":
        return (lane & ~(numbers[0] - 1)) + numbers[1]
    raise NotModelled(f"swizzle {text}")


def _swizzle(ins: Instruction, kernel: Kernel) -> Step:
    _allow(ins, "offset")
    data = vector_reader(ins.operands[1], "u32", kernel.accumulators)
    write, lane = vector_writer(ins.operands[0], "u32", kernel.accumulators), swizzle_lanes(ins.modifiers["offset"])
    return lambda g: write(g, np.where(g.mask, data(g), _U(0))[:, lane])


BUILDERS: dict[str, Builder] = {
    **{f"{s}_load_{n}": _global(item, False, s) for s in ("global", "flat", "scratch") for n, item in _LOADS.items()},
    **{f"{s}_store_{n}": _global(item, True, s) for s in ("global", "flat", "scratch") for n, item in _STORES.items()},
    **{f"buffer_load_{name}": _buffer_or_lds(item) for name, item in _LOADS.items()},
    **{f"buffer_store_{name}": _buffer(item, True) for name, item in _STORES.items()},
    **{f"global_load_lds_{name}": _to_lds(_LOADS[name]) for name in ("ubyte", "ushort", "dword", "dwordx3", "dwordx4")},
    **{f"ds_read_{name}": _lds_read(item) for name, item in _LDS_READS.items()},
    **{f"ds_write_{name}": _lds_write(item) for name, item in _LDS_WRITES.items()},
    **{
        f"ds_{verb}2{'st64' if stride == 64 else ''}_b{32 * words}": _two(words, stride, verb == "write")
        for verb in ("read", "write")
        for stride in (1, 64)
        for words in (1, 2)
    },
    "ds_read_b64_tr_b16": _lds_transposed(2),
    "ds_read_b64_tr_b8": _lds_transposed(1),
    "ds_bpermute_b32": _bpermute,
    "ds_permute_b32": _permute,
    "ds_swizzle_b32": _swizzle,
}

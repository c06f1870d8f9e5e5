"""Atomic operations on memory and LDS.

ISA guide: "Buffer Instructions: atomics", "Flat Memory Instructions", "Data Share Operations". Lanes
that meet at one address take turns in the order of their waves and lanes: one of the orders that hardware may choose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa import access
from arena.platforms.cpu.amd_isa.access import CACHE, Access
from arena.platforms.cpu.amd_isa.conversions import from_bfloat16, pack, to_bfloat16
from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.memory import ByteArray
from arena.platforms.cpu.amd_isa.operands import registers
from arena.platforms.cpu.amd_isa.valu import Kernel, Step
from arena.platforms.cpu.amd_isa.waves import Waves

Array = Any
Function = Callable[..., Any]
_U32, _U64 = np.uint32, np.uint64


def _signed(function: Callable[[Array, Array], Array]) -> Function:
    def apply(old: Array, new: Array) -> Array:
        kind = f"i{old.itemsize}"
        return function(old.view(kind), new.view(kind)).view(old.dtype)

    return apply


def _floating(function: Callable[[Array, Array], Array], dtype: Any) -> Function:
    return lambda old, new: function(old.view(dtype), new.view(dtype)).view(old.dtype)


def _bfloat_pair(old: Array, new: Array) -> Array:
    halves = []
    for shift in (0, 16):
        a, b = (from_bfloat16((x >> _U32(shift)).astype(np.uint16)) for x in (old, new))
        halves.append(to_bfloat16(a + b))
    return pack(*halves)


def _half_pair(old: Array, new: Array) -> Array:
    return (old.view(np.float16) + new.view(np.float16)).view(np.uint32)


_ANY: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "smin": _signed(np.minimum),
    "smax": _signed(np.maximum),
    "umin": np.minimum,
    "umax": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "swap": lambda old, new: new,
    "inc": lambda old, new: np.where(old >= new, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, new: np.where((old == 0) | (old > new), new, old - old.dtype.type(1)),
}
_COMPARE = "cmpswap"
_SINGLE: dict[str, tuple[Function, int]] = {
    "add_f32": (_floating(np.add, np.float32), 1),
    "pk_add_f16": (_half_pair, 1),
    "pk_add_bf16": (_bfloat_pair, 1),
    "add_f64": (_floating(np.add, np.float64), 2),
    "min_f64": (_floating(np.fmin, np.float64), 2),
    "max_f64": (_floating(np.fmax, np.float64), 2),
}
_OF_MEMORY: dict[str, tuple[Function | None, int]] = {
    **{name: (function, 1) for name, function in _ANY.items()},
    **{f"{name}_x2": (function, 2) for name, function in _ANY.items()},
    **_SINGLE,
    _COMPARE: (None, 1),
    f"{_COMPARE}_x2": (None, 2),
}
_LDS_NAMES = {"min_i": "smin", "max_i": "smax", "min_u": "umin", "max_u": "umax", "add_u": "add", "sub_u": "sub"}
_LDS_NAMES |= {"inc_u": "inc", "dec_u": "dec", "and_b": "and", "or_b": "or", "xor_b": "xor"}
_OF_LDS: dict[str, tuple[Function | None, int]] = {
    **{f"{n}{32 * words}": (_ANY[name], words) for n, name in _LDS_NAMES.items() for words in (1, 2)},
    **_SINGLE,
    "min_f32": (_floating(np.fmin, np.float32), 1),
    "max_f32": (_floating(np.fmax, np.float32), 1),
}


def _fetch(held: ByteArray, index: Array, words: int) -> Array:
    if words == 1:
        return held.gather(index, 4)
    return held.gather(index, 4).astype(_U64) | held.gather(index + 4, 4).astype(_U64) << _U64(32)


def _put(held: ByteArray, index: Array, words: int, value: Array) -> None:
    held.scatter(index, 4, (value & value.dtype.type(0xFFFFFFFF)).astype(_U32))
    if words == 2:
        held.scatter(index + 4, 4, (value >> _U64(32)).astype(_U32))


def apply(held: ByteArray, index: Array, words: int, function: Function | None, data: list[Array]) -> Array:
    """Update memory at each index in turn and return what was there before each turn.

    `data`: the operand, and for compare-and-swap (no function) before it the value that is compared with.
    """
    order = np.argsort(index, kind="stable")
    placed = index[order]
    starts = np.concatenate([[True], placed[1:] != placed[:-1]])
    first = np.maximum.accumulate(np.where(starts, np.arange(len(placed)), 0))
    turn = np.empty(len(index), np.int64)
    turn[order] = np.arange(len(placed)) - first
    before = np.zeros(len(index), data[0].dtype)
    for number in range(int(turn.max()) + 1):
        lanes = np.nonzero(turn == number)[0]
        old = _fetch(held, index[lanes], words)
        before[lanes] = old
        if function is not None:
            new = function(old, data[0][lanes])
        else:
            new = np.where(old == data[1][lanes], data[0][lanes], old)
        _put(held, index[lanes], words, new)
    return before


def _step(place: Access, words: int, function: Function | None, data: list[int], into: int | None) -> Step:
    """`data`: registers of the operands; `into`: where what was there before goes, if anywhere."""

    def step(g: Waves) -> None:
        mask = place.mask(g)
        if not mask.any():
            return
        values = [_value(g, register, words, mask) for register in data]
        before = np.zeros(len(values[0]), values[0].dtype)
        for held, index, lanes in place.parts(g, mask):
            before[lanes] = apply(held, index, words, function, [value[lanes] for value in values])
        if into is not None:
            g.v[into][mask] = (before & before.dtype.type(0xFFFFFFFF)).astype(_U32)
            if words == 2:
                g.v[into + 1][mask] = (before >> _U64(32)).astype(_U32)

    return step


def _value(g: Waves, register: int, words: int, mask: Array) -> Array:
    low = g.v[register][mask]
    return low if words == 1 else low.astype(_U64) | g.v[register + 1][mask].astype(_U64) << _U64(32)


def _number(text: str, kernel: Kernel) -> int:
    found = registers(text, kernel.accumulators)
    if found is None or found.file != "v":
        raise NotModelled(f"atomic operand {text}")
    return found.first


def _memory(space: str, function: Function | None, words: int) -> Callable[[Instruction, Kernel], Step]:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        if ins.modifiers.keys() - CACHE - {"offset", "offen"}:
            raise NotModelled(ins.text)
        returns = "sc0" in ins.modifiers or "glc" in ins.modifiers
        if space == "buffer":
            place = access.buffer_place(ins, ins.operands[1:], 4 * words, kernel)
            source, into = _number(ins.operands[0], kernel), _number(ins.operands[0], kernel) if returns else None
        else:
            texts = ins.operands[1:] if returns else ins.operands
            into = _number(ins.operands[0], kernel) if returns else None
            source = _number(texts[1], kernel)
            if space == "flat":
                place = access.flat_place(ins, texts[0], 4 * words, kernel)
            else:
                place = access.global_place(ins, texts[0], texts[2], 4 * words, kernel)
        # A compare-and-swap's data are the new value and then the one that is compared with.
        data = [source] if function is not None else [source, source + words]
        return _step(place, words, function, data, into)

    return build


def _lds(function: Function | None, words: int, returns: bool) -> Callable[[Instruction, Kernel], Step]:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        if ins.modifiers.keys() - {"offset"}:
            raise NotModelled(ins.text)
        into = _number(ins.operands[0], kernel) if returns else None
        address, *texts = ins.operands[1:] if returns else ins.operands
        place = access.lds_place(ins, address, ins.number("offset"), 4 * words, kernel)
        # DS_CMPST has the value that is compared with first.
        data = [_number(text, kernel) for text in reversed(texts)]
        return _step(place, words, function, data, into)

    return build


def _returning(name: str) -> str:
    """`add_u32` → `add_rtn_u32`, `pk_add_f16` → `pk_add_rtn_f16`."""
    verb, _, kind = name.rpartition("_")
    return f"{verb}_rtn_{kind}"


BUILDERS: dict[str, Callable[[Instruction, Kernel], Step]] = {
    **{
        f"{space}_atomic_{name}": _memory(space, function, words)
        for space in ("global", "flat", "buffer")
        for name, (function, words) in _OF_MEMORY.items()
    },
    **{f"ds_{name}": _lds(function, words, False) for name, (function, words) in _OF_LDS.items()},
    **{f"ds_{_returning(name)}": _lds(function, words, True) for name, (function, words) in _OF_LDS.items()},
    **{f"ds_cmpst_b{32 * words}": _lds(None, words, False) for words in (1, 2)},
    **{f"ds_cmpst_rtn_b{32 * words}": _lds(None, words, True) for words in (1, 2)},
    **{f"ds_wrxchg_rtn_b{32 * words}": _lds(_ANY["swap"], words, True) for words in (1, 2)},
}

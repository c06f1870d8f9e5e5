"""Compile operands to functions: readers that give NumPy arrays of a kind, and writers that respect EXEC.

ISA guide: "Scalar ALU Operations: Operands", "Vector ALU Operands": registers, inline constants, literals.
A kind is a dtype: `u32`, `i32`, `f32`, `u16`, `i16`, `f16`, `u64`, `i64`, `f64`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.waves import (
    EXEC,
    NAMED,
    PAIRS,
    PRIVATE_APERTURE,
    SHARED_APERTURE,
    TRAP,
    VCC,
    Waves,
    bits_of,
    lanes_of,
)

Array = Any
Reader = Callable[[Waves], Any]
Writer = Callable[..., None]
DTYPES: dict[str, Any] = {
    "u32": np.uint32,
    "i32": np.int32,
    "f32": np.float32,
    "u16": np.uint16,
    "i16": np.int16,
    "f16": np.float16,
    "u64": np.uint64,
    "i64": np.int64,
    "f64": np.float64,
}
_REGISTER = re.compile(r"^(?P<file>[vas]|ttmp)(?:(?P<one>\d+)|\[(?P<first>\d+)(?::(?P<last>\d+))?\])$")
_FLOAT = re.compile(r"^-?\d+\.\d+(e[+-]?\d+)?$")
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


@dataclass(frozen=True)
class Registers:
    """A register operand: `file` is `v` (vector and accumulation) or `s`, by the number that the executor uses."""

    file: str
    first: int
    count: int


def registers(text: str, accumulators: int) -> Registers | None:
    """Return the registers that an operand names, or None for a constant. `accumulators`: where these begin."""
    found = _REGISTER.match(text)
    if found is None:
        if text in NAMED:
            return Registers("s", NAMED[text], 1)
        return Registers("s", PAIRS[text], 2) if text in PAIRS else None
    first = int(found["one"] or found["first"])
    count = 1 if found["one"] or found["last"] is None else int(found["last"]) - first + 1
    file = found["file"]
    if file == "a":
        return Registers("v", accumulators + first, count)
    return Registers("s", TRAP + first, count) if file == "ttmp" else Registers(file, first, count)


def constant(text: str, kind: str) -> Any:
    """Return an inline constant or literal as a NumPy scalar of `kind`. Raises `NotModelled` for anything else."""
    dtype, bits = DTYPES[kind], int(kind[1:])
    text = text[4:-1] if text.startswith("lit(") else text  # an inline constant spelled out as a literal
    if text in _APERTURES:
        return np.array([_APERTURES[text] << 32 if bits == 64 else 0], np.uint64).astype(f"u{bits // 8}").view(dtype)[0]
    if _FLOAT.match(text):
        if kind[0] == "f":
            return dtype(float(text))
        value = int(np.float32(float(text)).view(np.uint32)) if bits != 16 else int(np.float16(float(text)).view("u2"))
    else:
        try:
            value = int(text, 0)
        except ValueError:
            raise NotModelled(f"operand {text}") from None
        if kind == "f64" and text.startswith("0x"):
            value <<= 32  # a literal is the high half
    return np.array([value & (1 << bits) - 1], f"u{bits // 8}").view(dtype)[0]


_APERTURES = {"src_shared_base": SHARED_APERTURE, "src_private_base": PRIVATE_APERTURE}


def vector_reader(text: str, kind: str, accumulators: int, half: int = 0) -> Reader:
    """Return a reader of [waves, 64], [waves, 1] or a scalar; `half` chooses the 16 bits of a 16-bit kind."""
    found = registers(text, accumulators)
    if found is None:
        if text == "scc":
            return lambda g: g.scc[:, None].astype(DTYPES[kind])
        value = constant(text, kind)
        return lambda g: value
    if found.file == "s":
        read = scalar_reader(text, kind, half)
        return lambda g: read(g)[:, None]
    r = found.first
    if kind == "u32":
        return lambda g: g.v[r]
    if kind == "f32":
        return lambda g: g.vf[r]
    if kind == "i32":
        return lambda g: g.vi[r]
    if kind == "f16":
        return lambda g: g.vh[r, ..., half]
    if kind in ("u16", "i16"):
        dtype = DTYPES[kind]
        return lambda g: g.vw[r, ..., half].view(dtype)
    return _pair(r, DTYPES[kind])


def _pair(r: int, dtype: Any) -> Reader:
    def read(g: Waves) -> Array:
        words = np.empty((*g.v.shape[1:], 2), np.uint32)
        words[..., 0], words[..., 1] = g.v[r], g.v[r + 1]
        return words.view(dtype)[..., 0]

    return read


def scalar_reader(text: str, kind: str, half: int = 0) -> Reader:
    """Return a reader of [waves] for a scalar operand; constants are NumPy scalars."""
    found = registers(text, 0)
    if found is None:
        if text == "scc":
            return lambda g: g.scc.astype(DTYPES[kind])
        value = constant(text, kind)
        return lambda g: np.full(g.count, value)
    if found.file == "v":
        raise NotModelled(f"vector register {text} as a scalar operand")
    r, dtype = found.first, DTYPES[kind]
    if kind[1:] == "64":
        if r % 2:
            raise NotModelled(f"unaligned pair {text}")
        return lambda g: g.s64[:, r // 2].view(dtype)
    if kind[1:] == "16":
        return lambda g: g.s.view(dtype)[:, 2 * r + half]
    return lambda g: g.s[:, r].view(dtype)


def scalar_writer(text: str, kind: str) -> Writer:
    """Return `write(g, values)` for a scalar destination of 32 or 64 bits."""
    found = registers(text, 0)
    if found is None or found.file == "v":
        raise NotModelled(f"scalar destination {text}")
    r = found.first
    if kind[1:] == "64":
        if r == EXEC:

            def write_exec(g: Waves, value: Array) -> None:
                g.s64[:, EXEC // 2] = value
                g.exec_changed()

            return write_exec

        def write_pair(g: Waves, value: Array) -> None:
            g.s64[:, r // 2] = value.view(np.uint64)

        return write_pair

    def write(g: Waves, value: Array) -> None:
        g.s[:, r] = value.view(np.uint32)
        if r >= EXEC:
            g.exec_changed()

    return write


def mask_reader(text: str) -> Reader:
    """Return a reader of bool [waves, 64] for a lane mask."""
    found = registers(text, 0)
    if found is None:
        value = lanes_of(np.array([int(text, 0) & (1 << 64) - 1], np.uint64))
        return lambda g: value
    r = found.first // 2
    return lambda g: lanes_of(g.s64[:, r])


def mask_writer(text: str) -> Writer:
    """Return `write(g, lanes)`: bits of lanes that are not in `lanes` become 0."""
    write = scalar_writer("vcc" if text == "" else text, "u64")
    return lambda g, lanes: write(g, bits_of(np.broadcast_to(lanes, (g.count, 64))))


def vector_writer(text: str, kind: str, accumulators: int, half: int | None = None) -> Writer:
    """Return `write(g, values, mask=None)`; lanes outside of EXEC, or of `mask`, keep what they had.

    A 16-bit value zeroes the other half of the register unless `half` says which one is written.
    """
    found = registers(text, accumulators)
    if found is None or found.file == "s":
        raise NotModelled(f"vector destination {text}")
    r = found.first
    if kind[1:] == "64":
        return _pair_writer(r)
    if kind[1:] == "16" and half is not None:
        return _masked(lambda g: g.vw[r, ..., half], np.uint16)
    if kind[1:] == "16":
        return _widened(r)
    views = {"u32": lambda g: g.v[r], "i32": lambda g: g.vi[r], "f32": lambda g: g.vf[r]}
    return _masked(views[kind], DTYPES[kind])


def _masked(view: Reader, dtype: Any) -> Writer:
    def write(g: Waves, value: Any, mask: Array | None = None) -> None:
        if dtype is np.uint16:
            value = np.asarray(value).view(np.uint16)
        if mask is None and g.full:
            view(g)[...] = value
        else:
            np.copyto(view(g), value, where=g.mask if mask is None else mask)

    return write


def _widened(r: int) -> Writer:
    def write(g: Waves, value: Any, mask: Array | None = None) -> None:
        wide = np.asarray(value).view(np.uint16).astype(np.uint32)
        np.copyto(g.v[r], wide, where=g.mask if mask is None else mask)

    return write


def _pair_writer(r: int) -> Writer:
    def write(g: Waves, value: Any, mask: Array | None = None) -> None:
        bits = np.asarray(value).view(np.uint64)
        where = g.mask if mask is None else mask
        low, high = (bits & _LOW).astype(np.uint32), (bits >> _32).astype(np.uint32)
        np.copyto(g.v[r], low, where=where)
        np.copyto(g.v[r + 1], high, where=where)

    return write


VCC_PAIR = VCC // 2

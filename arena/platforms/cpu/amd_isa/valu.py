"""Compile vector ALU instructions: operand modifiers, output modifiers, and the DPP and SDWA encodings.

ISA guide: "Input and output modifiers", "Data parallel primitives", "Sub-dword addressing". The
operations themselves are rows of tables in the family modules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from arena.platforms.cpu.amd_isa import lanes
from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.operands import DTYPES, Reader, Writer, vector_reader, vector_writer
from arena.platforms.cpu.amd_isa.waves import Waves

Array = Any
Step = Callable[[Waves], None]
_SIGN: dict[int, Any] = {32: np.uint32(1 << 31), 16: np.uint16(1 << 15), 64: np.uint64(1 << 63)}
_OUTPUT_SCALE = {("mul", "2"): 2.0, ("mul", "4"): 4.0, ("div", "2"): 0.5}
_IGNORED = {"row_mask", "bank_mask", "bound_ctrl", "fi"}
_SELECTED = ("src0_sel", "src1_sel")


class Row(NamedTuple):
    """One operation: kind of the result, kinds of the sources, and the function of the sources' arrays."""

    to: str
    sources: str
    function: Callable[..., Any]
    accumulates: bool = False
    """whether the destination is the last source as well"""
    keeps_half: bool = False
    """whether a 16-bit result leaves the other half of the register as it was"""
    saturating: Callable[..., Any] | None = None
    """for integers: the function that `clamp` stands for"""


@dataclass(frozen=True)
class Kernel:
    """Properties of a kernel that its instructions are compiled for."""

    accumulators: int
    """number of the first accumulation register in `Waves.v`"""
    arch: str = "gfx942"
    saturates: bool = False
    """whether the mode has overflows to float16 become the largest number (FP16_OVFL)"""


def unmodified(text: str) -> tuple[str, bool, bool, bool]:
    """Return the operand without its modifiers, and whether it is negated, absolute, sign-extended."""
    negated = text.startswith("-") and not text[1:2].isdigit()
    text = text[1:] if negated else text
    if text.startswith("neg("):
        negated, text = True, text[4:-1]
    absolute = text.startswith(("|", "abs("))
    if absolute:
        text = text[1:-1] if text[0] == "|" else text[4:-1]
    extended = text.startswith("sext(")
    return (text[5:-1] if extended else text), negated, absolute, extended


def modified(read: Reader, kind: str, negated: bool, absolute: bool) -> Reader:
    """Return a reader that applies `-` and `|x|`, on the sign bit where the kind is no float."""
    if not negated and not absolute:
        return read
    if kind[0] == "f":
        if negated and absolute:
            return lambda g: -np.abs(read(g))
        return (lambda g: np.abs(read(g))) if absolute else (lambda g: -read(g))
    if kind[0] != "u":
        raise NotModelled(f"a sign modifier on a source of kind {kind}")
    sign = _SIGN[int(kind[1:])]
    if absolute and negated:
        return lambda g: read(g) | sign
    return (lambda g: read(g) & ~sign) if absolute else (lambda g: read(g) ^ sign)


def sources(ins: Instruction, texts: tuple[str, ...], kinds: list[str], kernel: Kernel) -> list[Reader]:
    """Return a reader for every source operand."""
    if len(texts) != len(kinds):
        raise NotModelled(f"{ins.text}: {len(texts)} sources, expected {len(kinds)}")
    return [
        _source(ins, place, text, kind, kernel) for place, (text, kind) in enumerate(zip(texts, kinds, strict=True))
    ]


def _source(ins: Instruction, place: int, text: str, kind: str, kernel: Kernel) -> Reader:
    bare, negated, absolute, extended = unmodified(text)
    if ins.encoding == "sdwa" and place < len(_SELECTED):
        read = lanes.selected(bare, kind, ins.modifiers.get(_SELECTED[place], "DWORD"), extended, kernel.accumulators)
    else:
        half = ins.numbers("op_sel", (0, 0, 0, 0))[place] if kind[1:] == "16" else 0
        read = vector_reader(bare, kind, kernel.accumulators, half)
    return modified(read, kind, negated, absolute)


def compile_row(ins: Instruction, row: Row, kernel: Kernel) -> Step:
    """Return the step of an operation with one vector destination."""
    kinds = row.sources.split()
    texts = (*ins.operands[1:], *((ins.operands[0],) if row.accumulates else ()))
    read = sources(ins, texts, kinds, kernel)
    write = destination(ins, row, kernel)
    function = output_modified(ins, row)
    if "dpp" in ins.encoding:
        return _with_dpp(ins, read, function, write)
    if len(read) == 1:
        (a,) = read
        return lambda g: write(g, function(a(g)))
    if len(read) == 2:
        a, b = read
        return lambda g: write(g, function(a(g), b(g)))
    if len(read) == 3:
        a, b, c = read
        return lambda g: write(g, function(a(g), b(g), c(g)))
    return lambda g: write(g, function(*(each(g) for each in read)))


def _with_dpp(ins: Instruction, read: list[Reader], function: Callable[..., Any], write: Writer) -> Step:
    move = lanes.mover(ins)
    first, rest = read[0], read[1:]

    def step(g: Waves) -> None:
        value, mask = move(g, first(g))
        write(g, function(value, *(each(g) for each in rest)), mask)

    return step


def destination(ins: Instruction, row: Row, kernel: Kernel) -> Writer:
    """Return the writer of the first operand."""
    if ins.encoding == "sdwa":
        return lanes.placed(ins, row.to, kernel.accumulators)
    half = None
    if row.to[1:] == "16":
        chosen = ins.numbers("op_sel", (0, 0, 0, 0))
        count = len(row.sources.split()) - row.accumulates
        selected = chosen[count] if "op_sel" in ins.modifiers else 0
        half = selected if row.keeps_half or selected else None
    return vector_writer(ins.operands[0], row.to, kernel.accumulators, half)


def output_modified(ins: Instruction, row: Row) -> Callable[..., Any]:
    """Return the function with `clamp`, `mul` and `div`; refuses modifiers that nothing here applies."""
    function = row.function
    for key in ("mul", "div"):
        if key in ins.modifiers:
            scale = DTYPES[row.to](_OUTPUT_SCALE[key, ins.modifiers[key]])
            function = _scaled(function, scale)
    if "clamp" in ins.modifiers:
        if row.to[0] == "f":
            function = _clamped(function, DTYPES[row.to])
        elif row.saturating is not None:
            function = row.saturating
        else:
            raise NotModelled(f"clamp of {ins.name}: {ins.text}")
    known = {"mul", "div", "clamp"}
    if any(kind[1:] == "16" for kind in (row.to, *row.sources.split())):
        known |= {"op_sel"}
    if ins.encoding == "sdwa":
        known |= {"dst_sel", "dst_unused", *_SELECTED}
    if "dpp" in ins.encoding:
        known |= lanes.DPP | _IGNORED
    unknown = ins.modifiers.keys() - known
    if unknown:
        raise NotModelled(f"modifier {sorted(unknown)[0]} of {ins.name}: {ins.text}")
    return function


def _scaled(function: Callable[..., Any], scale: Any) -> Callable[..., Any]:
    return lambda *arrays: function(*arrays) * scale


def _clamped(function: Callable[..., Any], dtype: Any) -> Callable[..., Any]:
    """To [0, 1]; NaN becomes 0 (DX10_CLAMP)."""
    return lambda *arrays: np.nan_to_num(np.clip(function(*arrays), dtype(0), dtype(1)), nan=0.0)

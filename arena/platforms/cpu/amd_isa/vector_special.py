"""Vector operations with a second result or a lane mask: compares, carries, selects, division scaling, lane reads.

ISA guide: "VOPC Instructions", "VOP3A & VOP3B Instructions". Each entry of `BUILDERS` compiles the
instructions of one mnemonic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa import lanes
from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.operands import (
    mask_reader,
    mask_writer,
    scalar_reader,
    scalar_writer,
    vector_reader,
    vector_writer,
)
from arena.platforms.cpu.amd_isa.valu import Kernel, Row, Step, compile_row, destination, sources
from arena.platforms.cpu.amd_isa.waves import EXEC, LANES, Waves, bits_of

Array = Any
Builder = Callable[[Instruction, Kernel], Step]
_U = np.uint32
_CLASSES = 10


def _ordered(a: Array, b: Array) -> Array:
    return ~(np.isnan(a) | np.isnan(b))


COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
FLOAT_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    **{name: function for name, function in COMPARISONS.items() if name != "ne"},
    "lg": lambda a, b: (a < b) | (a > b),
    "neq": np.not_equal,
    "nlt": lambda a, b: ~(a < b),
    "nle": lambda a, b: ~(a <= b),
    "ngt": lambda a, b: ~(a > b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "o": _ordered,
    "u": lambda a, b: ~_ordered(a, b),
}


def float_class(x: Array, wanted: Array) -> Array:
    """Return whether a float is of one of the classes in the bit mask (V_CMP_CLASS)."""
    x = np.asarray(x)
    negative, tiny = np.signbit(x), np.finfo(x.dtype).tiny
    size = np.abs(x)
    quiet_bit = {2: 0x200, 4: 0x400000, 8: 1 << 51}[x.itemsize]
    quiet = (x.view(f"u{x.itemsize}") & np.array(quiet_bit, f"u{x.itemsize}")) != 0
    kinds = [np.isnan(x) & ~quiet, np.isnan(x) & quiet]
    sized = [np.isinf(x), np.isfinite(x) & (size >= tiny), (size > 0) & (size < tiny), size == 0]
    kinds += [negative & kind for kind in sized] + [~negative & kind for kind in reversed(sized)]
    result = np.zeros(np.broadcast_shapes(x.shape, np.shape(wanted)), bool)
    for bit, kind in enumerate(kinds):
        result |= kind & ((np.asarray(wanted) >> _U(bit)) & _U(1)).astype(bool)
    return result


def _compare(function: Callable[[Array, Array], Array], kinds: str, writes_exec: bool) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        unknown = ins.modifiers.keys() - {"src0_sel", "src1_sel", "op_sel"}
        if unknown or "dpp" in ins.encoding:
            raise NotModelled(f"compare with modifiers: {ins.text}")
        a, b = sources(ins, ins.operands[1:], kinds.split(), kernel)
        write = mask_writer(ins.operands[0])

        def step(g: Waves) -> None:
            found = function(a(g), b(g)) & g.mask
            write(g, found)
            if writes_exec:
                g.s64[:, EXEC // 2] = bits_of(found)
                g.exec_changed()

        return step

    return build


def _constant(value: bool) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.full((1, LANES), value)


def _comparisons() -> dict[str, Builder]:
    table: dict[str, Builder] = {}
    always = {"f": _constant(False), "t": _constant(True), "tru": _constant(True)}
    for x, writes in (("v_cmp", False), ("v_cmpx", True)):
        for kind in ("i16", "u16", "i32", "u32", "i64", "u64"):
            for name, function in {**COMPARISONS, **always}.items():
                table[f"{x}_{name}_{kind}"] = _compare(function, f"{kind} {kind}", writes)
        for kind in ("f16", "f32", "f64"):
            for name, function in {**FLOAT_COMPARISONS, **always}.items():
                table[f"{x}_{name}_{kind}"] = _compare(function, f"{kind} {kind}", writes)
            table[f"{x}_class_{kind}"] = _compare(float_class, f"{kind} u32", writes)
    return table


def _cndmask(ins: Instruction, kernel: Kernel) -> Step:
    """Choose the second source where the mask has a one."""
    *texts, mask_text = ins.operands[1:]
    choose = mask_reader(mask_text)
    move = lanes.mover(ins) if "dpp" in ins.encoding else None
    a, b = sources(ins, tuple(texts), ["u32", "u32"], kernel)
    write = destination(ins, Row("u32", "u32 u32", np.where), kernel)
    if move is None:
        return lambda g: write(g, np.where(choose(g), b(g), a(g)))

    def step(g: Waves) -> None:
        first, mask = move(g, a(g))
        write(g, np.where(choose(g), b(g), first), mask)

    return step


def _carry(subtracts: bool, reverses: bool, takes: bool) -> Builder:
    """Add or subtract with a carry out, and a carry in where `takes`."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        plain(ins)
        texts = ins.operands[2:4]
        a, b = sources(ins, texts, ["u32", "u32"], kernel)
        write = vector_writer(ins.operands[0], "u32", kernel.accumulators)
        write_carry = mask_writer(ins.operands[1])
        carry_in = mask_reader(ins.operands[4]) if takes else None

        def step(g: Waves) -> None:
            x, y = (np.asarray(each(g)).astype(np.int64) for each in ((b, a) if reverses else (a, b)))
            more = carry_in(g) if carry_in is not None else 0
            total = x - y - more if subtracts else x + y + more
            write(g, (total & 0xFFFFFFFF).astype(_U))
            write_carry(g, ((total < 0) | (total > 0xFFFFFFFF)) & g.mask)

        return step

    return build


def _mad64(kind: str) -> Builder:
    """Return the builder of V_MAD_U64_U32 or V_MAD_I64_I32: 32 × 32 + 64 bits, with a carry out."""
    wide = np.uint64 if kind == "u" else np.int64

    def build(ins: Instruction, kernel: Kernel) -> Step:
        plain(ins)
        a, b, c = sources(ins, ins.operands[2:], [f"{kind}32", f"{kind}32", f"{kind}64"], kernel)
        write = vector_writer(ins.operands[0], f"{kind}64", kernel.accumulators)
        write_carry = mask_writer(ins.operands[1])

        def step(g: Waves) -> None:
            product = np.asarray(a(g)).astype(wide) * np.asarray(b(g)).astype(wide)
            addend = c(g)
            total = product + addend
            over = total < product if kind == "u" else ((total < product) != (np.asarray(addend) < 0))
            write(g, total)
            write_carry(g, over & g.mask)

        return step

    return build


def _div_scale(kind: str, far: int, scale: int, least: int) -> Builder:
    """Return the builder of V_DIV_SCALE: operands are scaled so that no step of a division leaves the normal range."""
    dtype: Any = np.float32 if kind == "f32" else np.float64
    tiny = np.finfo(dtype).tiny
    up, down = dtype(2.0**scale), dtype(2.0**-scale)

    def denormal(x: Array) -> Array:
        return (np.abs(x) < tiny) & (x != 0)

    def scaled(value: Array, below: Array, above: Array) -> tuple[Array, Array]:
        value, below, above = np.broadcast_arrays(value, below, above)
        exponents = np.frexp(above)[1] - np.frexp(below)[1]
        is_below, is_above = value == below, value == above
        bias = 126 if kind == "f32" else 1022  # frexp's exponent to the biased one
        inverse, quotient = denormal(dtype(1) / below), denormal(above / below)
        cases = [
            (below == 0) | (above == 0),
            exponents >= far,
            denormal(below),
            inverse & quotient,
            inverse,
            quotient,
            np.frexp(above)[1] + bias <= least,
        ]
        results = [
            np.full_like(value, np.nan),
            np.where(is_below, value * up, value),
            value * up,
            np.where(is_below, value * down, value),
            value * down,
            np.where(is_above, value * up, value),
            value * up,
        ]
        flags = np.select(cases, [np.broadcast_to(np.bool_(n in (1, 3, 5)), value.shape) for n in range(7)], np.False_)
        return np.select(cases, results, value), flags

    def build(ins: Instruction, kernel: Kernel) -> Step:
        plain(ins)
        a, b, c = sources(ins, ins.operands[2:], [kind] * 3, kernel)
        write, write_flags = vector_writer(ins.operands[0], kind, kernel.accumulators), mask_writer(ins.operands[1])

        def step(g: Waves) -> None:
            value, flags = scaled(a(g), b(g), c(g))
            write(g, value)
            write_flags(g, flags & g.mask)

        return step

    return build


def _div_fmas(kind: str, scale: int) -> Builder:
    """Return the builder of V_DIV_FMAS: a fused multiply-add, scaled back where VCC says that V_DIV_SCALE scaled."""
    from arena.platforms.cpu.amd_isa.vector_float import fma32, fma64

    fma, dtype = (fma32, np.float32) if kind == "f32" else (fma64, np.float64)
    flagged = mask_reader("vcc")

    def build(ins: Instruction, kernel: Kernel) -> Step:
        plain(ins)
        a, b, c = sources(ins, ins.operands[1:], [kind] * 3, kernel)
        write = vector_writer(ins.operands[0], kind, kernel.accumulators)

        def step(g: Waves) -> None:
            addend = c(g)
            value = fma(a(g), b(g), addend)
            by = np.where(np.abs(addend) >= 2, dtype(2.0**scale), dtype(2.0**-scale))
            write(g, np.where(flagged(g), value * by, value))

        return step

    return build


def _readfirstlane(ins: Instruction, kernel: Kernel) -> Step:
    read = vector_reader(ins.operands[1], "u32", kernel.accumulators)
    write = scalar_writer(ins.operands[0], "u32")

    def step(g: Waves) -> None:
        lane = np.argmax(g.mask, axis=1)  # lane 0 where none is active
        write(g, np.ascontiguousarray(np.broadcast_to(read(g), (g.count, LANES))[np.arange(g.count), lane]))

    return step


def _readlane(ins: Instruction, kernel: Kernel) -> Step:
    read = vector_reader(ins.operands[1], "u32", kernel.accumulators)
    lane, write = scalar_reader(ins.operands[2], "u32"), scalar_writer(ins.operands[0], "u32")
    return lambda g: write(g, np.ascontiguousarray(read(g)[np.arange(g.count), lane(g) & _U(63)]))


def _writelane(ins: Instruction, kernel: Kernel) -> Step:
    value, lane = scalar_reader(ins.operands[1], "u32"), scalar_reader(ins.operands[2], "u32")
    into = vector_reader(ins.operands[0], "u32", kernel.accumulators)

    def step(g: Waves) -> None:
        into(g)[np.arange(g.count), lane(g) & _U(63)] = value(g)

    return step


def _mbcnt(first: int) -> Builder:
    """Return the builder of V_MBCNT: ones of a mask below the lane, of its low or its high half, plus an addend."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        mask, more = sources(ins, ins.operands[1:], ["u32", "u32"], kernel)
        write = vector_writer(ins.operands[0], "u32", kernel.accumulators)
        below = np.clip(np.arange(LANES) - first, 0, 32).astype(np.uint64)
        wanted = ((np.uint64(1) << below) - np.uint64(1)).astype(_U)
        return lambda g: write(g, np.bitwise_count(mask(g) & wanted).astype(_U) + more(g))

    return build


def _swap(ins: Instruction, kernel: Kernel) -> Step:
    a, b = (vector_reader(text, "u32", kernel.accumulators) for text in ins.operands)
    write_a, write_b = (vector_writer(text, "u32", kernel.accumulators) for text in ins.operands)

    def step(g: Waves) -> None:
        first, second = a(g).copy(), b(g).copy()
        write_a(g, second)
        write_b(g, first)

    return step


def plain(ins: Instruction) -> None:
    """Raise `NotModelled` where the instruction has modifiers."""
    if ins.encoding in ("dpp", "sdwa") or ins.modifiers:
        raise NotModelled(f"modifiers of {ins.name}: {ins.text}")


def rows(table: dict[str, Row]) -> dict[str, Builder]:
    """Return builders for tables of plain operations."""
    return {name: _row_builder(row) for name, row in table.items()}


def _row_builder(row: Row) -> Builder:
    return lambda ins, kernel: compile_row(ins, row, kernel)


BUILDERS: dict[str, Builder] = {
    **_comparisons(),
    "v_cndmask_b32": _cndmask,
    "v_add_co_u32": _carry(False, False, False),
    "v_sub_co_u32": _carry(True, False, False),
    "v_subrev_co_u32": _carry(True, True, False),
    "v_addc_co_u32": _carry(False, False, True),
    "v_subb_co_u32": _carry(True, False, True),
    "v_subbrev_co_u32": _carry(True, True, True),
    "v_mad_u64_u32": _mad64("u"),
    "v_mad_i64_i32": _mad64("i"),
    "v_div_scale_f32": _div_scale("f32", 96, 64, 23),
    "v_div_scale_f64": _div_scale("f64", 768, 128, 53),
    "v_div_fmas_f32": _div_fmas("f32", 64),
    "v_div_fmas_f64": _div_fmas("f64", 128),
    "v_readfirstlane_b32": _readfirstlane,
    "v_readlane_b32": _readlane,
    "v_writelane_b32": _writelane,
    "v_mbcnt_lo_u32_b32": _mbcnt(0),
    "v_mbcnt_hi_u32_b32": _mbcnt(32),
    "v_swap_b32": _swap,
}

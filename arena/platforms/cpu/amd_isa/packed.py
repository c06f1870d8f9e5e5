"""Packed math: two 16-bit or two 32-bit operations in one instruction, and the mixed-precision FMA.

ISA guide: "VOP3P: packed math", "VOP3P Instructions". `op_sel` chooses the half (or register) of each
source for the low result, `op_sel_hi` for the high one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa import vector_float, vector_int
from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.operands import DTYPES, Reader, constant, registers, vector_reader, vector_writer
from arena.platforms.cpu.amd_isa.valu import Kernel, Row, Step, modified, output_modified, unmodified
from arena.platforms.cpu.amd_isa.waves import Waves

Array = Any
_CHOICES = {"op_sel", "op_sel_hi", "neg_lo", "neg_hi"}
_PACKED: dict[str, tuple[str, int, Callable[..., Any]]] = {
    "v_pk_add_f16": ("f16", 2, np.add),
    "v_pk_mul_f16": ("f16", 2, np.multiply),
    "v_pk_min_f16": ("f16", 2, vector_float.minimum),
    "v_pk_max_f16": ("f16", 2, vector_float.maximum),
    "v_pk_fma_f16": ("f16", 3, vector_float.fma16),
    "v_pk_add_u16": ("u16", 2, np.add),
    "v_pk_sub_u16": ("u16", 2, np.subtract),
    "v_pk_add_i16": ("i16", 2, np.add),
    "v_pk_sub_i16": ("i16", 2, np.subtract),
    "v_pk_mul_lo_u16": ("u16", 2, np.multiply),
    "v_pk_mad_u16": ("u16", 3, lambda a, b, c: a * b + c),
    "v_pk_mad_i16": ("i16", 3, lambda a, b, c: a * b + c),
    "v_pk_min_u16": ("u16", 2, np.minimum),
    "v_pk_max_u16": ("u16", 2, np.maximum),
    "v_pk_min_i16": ("i16", 2, np.minimum),
    "v_pk_max_i16": ("i16", 2, np.maximum),
    "v_pk_lshlrev_b16": ("u16", 2, vector_int.ROWS["v_lshlrev_b16"].function),
    "v_pk_lshrrev_b16": ("u16", 2, vector_int.ROWS["v_lshrrev_b16"].function),
    "v_pk_ashrrev_i16": ("i16", 2, vector_int.ROWS["v_ashrrev_i16"].function),
    "v_pk_add_f32": ("f32", 2, np.add),
    "v_pk_mul_f32": ("f32", 2, np.multiply),
    "v_pk_fma_f32": ("f32", 3, vector_float.fma32),
    "v_pk_mov_b32": ("u32", 2, lambda a, b: None),
}


def _half(ins: Instruction, place: int, kind: str, high: bool, kernel: Kernel) -> Reader:
    """Return the reader of one source for the low or the high result."""
    bare, negated, absolute, _ = unmodified(ins.operands[1 + place])
    default = (1, 1, 1) if high else (0, 0, 0)
    chosen = ins.numbers("op_sel_hi" if high else "op_sel", default)[place]
    flip = ins.numbers("neg_hi" if high else "neg_lo", (0, 0, 0))[place]
    if kind[1:] == "16":
        if registers(bare, kernel.accumulators) is None:
            value = _constant_half(bare, kind, chosen)
            return modified(lambda g: value, kind, negated != bool(flip), absolute)
        read = vector_reader(bare, kind, kernel.accumulators, chosen)
    else:
        read = vector_reader(_nth(bare, chosen), kind, kernel.accumulators)
    return modified(read, kind, negated != bool(flip), absolute)


def _constant_half(text: str, kind: str, high: int) -> Any:
    """Return half of an inline constant: integers have 32 bits, floats 16 and zeros above them."""
    whole = constant(text, "u16" if "." in text else "u32")
    return (
        ((np.asarray(whole, np.uint32) >> np.uint32(16 * high)) & np.uint32(0xFFFF))
        .astype(np.uint16)
        .view(DTYPES[kind])
    )


def _nth(text: str, number: int) -> str:
    """Return the register `number` of a pair; a constant stands for both."""
    found = registers(text, 0)
    if found is None:
        return text
    plain = {"vcc": ("vcc_lo", "vcc_hi"), "exec": ("exec_lo", "exec_hi")}
    if text in plain:
        return plain[text][number]
    first = int(text[2:-1].split(":")[0])
    return f"{text[0]}{first + number}"


def _packed(ins: Instruction, kernel: Kernel) -> Step:
    kind, count, function = _PACKED[ins.name]
    if "clamp" in ins.modifiers:
        function = output_modified(_without_choices(ins), Row(kind, "", function))
    low = [_half(ins, place, kind, False, kernel) for place in range(count)]
    high = [_half(ins, place, kind, True, kernel) for place in range(count)]
    if kind[1:] == "16":
        write_low = vector_writer(ins.operands[0], kind, kernel.accumulators, 0)
        write_high = vector_writer(ins.operands[0], kind, kernel.accumulators, 1)
    else:
        write_low, write_high = (vector_writer(_nth(ins.operands[0], n), kind, kernel.accumulators) for n in (0, 1))

    def step(g: Waves) -> None:
        first, second = function(*(read(g) for read in low)), function(*(read(g) for read in high))
        write_low(g, first)
        write_high(g, second)

    return step


def _mov(ins: Instruction, kernel: Kernel) -> Step:
    """V_PK_MOV_B32: the low result from the first source, the high one from the second."""
    chosen = ins.numbers("op_sel", (0, 0))
    low = vector_reader(_nth(ins.operands[1], chosen[0]), "u32", kernel.accumulators)
    high = vector_reader(_nth(ins.operands[2], chosen[1]), "u32", kernel.accumulators)
    write_low, write_high = (vector_writer(_nth(ins.operands[0], n), "u32", kernel.accumulators) for n in (0, 1))

    def step(g: Waves) -> None:
        first, second = np.array(low(g)), np.array(high(g))
        write_low(g, first)
        write_high(g, second)

    return step


def _without_choices(ins: Instruction) -> Instruction:
    from dataclasses import replace

    return replace(ins, modifiers={key: value for key, value in ins.modifiers.items() if key not in _CHOICES})


def _mixed(to: str, half: int | None) -> Callable[[Instruction, Kernel], Step]:
    """Return the builder of V_FMA_MIX: each source is float32, or with `op_sel_hi` the half that `op_sel` says."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        wide, chosen = ins.numbers("op_sel_hi", (0, 0, 0)), ins.numbers("op_sel", (0, 0, 0))
        read = []
        for place, text in enumerate(ins.operands[1:]):
            bare, negated, absolute, _ = unmodified(text)
            kind = "f16" if wide[place] else "f32"
            reader = vector_reader(bare, kind, kernel.accumulators, chosen[place])
            read.append(modified(reader, kind, negated, absolute))
        function = output_modified(_without_choices(ins), Row("f32", "", vector_float.mix))
        write = vector_writer(ins.operands[0], to, kernel.accumulators, half)
        a, b, c = read

        def step(g: Waves) -> None:
            given = [np.asarray(x(g), np.float32) for x in (a, b, c)]
            value = function(*given)
            if to == "f16":
                value = value.astype(np.float16)
                value = vector_float.saturated(value, given) if kernel.saturates else value
            write(g, value)

        return step

    return build


BUILDERS: dict[str, Callable[[Instruction, Kernel], Step]] = {
    **dict.fromkeys(_PACKED, _packed),
    "v_pk_mov_b32": _mov,
    "v_fma_mix_f32": _mixed("f32", None),
    "v_fma_mixlo_f16": _mixed("f16", 0),
    "v_fma_mixhi_f16": _mixed("f16", 1),
}

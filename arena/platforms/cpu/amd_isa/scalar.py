"""Scalar ALU operations, scalar memory, and lane masks.

ISA guide: "Scalar ALU Operations", "Scalar Memory Operations", "SOP2", "SOPK", "SOP1", "SOPC",
"SMEM".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.operands import registers, scalar_reader, scalar_writer
from arena.platforms.cpu.amd_isa.scalar_operations import LOGIC, ROWS, ScalarRow, add_i32
from arena.platforms.cpu.amd_isa.valu import Kernel, Step
from arena.platforms.cpu.amd_isa.waves import EXEC, Waves

Array = Any
Builder = Callable[[Instruction, Kernel], Step]
_U, _I, _U64, _I64 = np.uint32, np.int32, np.uint64, np.int64


_SAVES = {
    f"s_{name}_saveexec_b64": function
    for name, function in {
        **LOGIC,
        "andn1": lambda a, b: ~a & b,
        "orn1": lambda a, b: ~a | b,
    }.items()
}
_COMPARE = {
    "eq": np.equal,
    "lg": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _row(row: ScalarRow) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        kinds = row.sources.split()
        if len(ins.operands) != 1 + len(kinds):
            raise NotModelled(ins.text)
        read = [scalar_reader(text, kind) for text, kind in zip(ins.operands[1:], kinds, strict=True)]
        write, function, scc = scalar_writer(ins.operands[0], row.to), row.function, row.scc

        def step(g: Waves) -> None:
            value = function(*(each(g) for each in read))
            if scc == "carry":
                value, flag = value
                write(g, value)
                g.scc = flag
            else:
                write(g, value)
                if scc:
                    g.scc = value != 0

        return step

    return build


def _save(function: Callable[[Array, Array], Array]) -> Builder:
    """Save EXEC and replace it by the source combined with it."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        read, write = scalar_reader(ins.operands[1], "u64"), scalar_writer(ins.operands[0], "u64")

        def step(g: Waves) -> None:
            before = g.s64[:, EXEC // 2].copy()
            after = function(read(g), before)
            write(g, before)
            g.s64[:, EXEC // 2] = after
            g.exec_changed()
            g.scc = after != 0

        return step

    return build


def _compare(function: Callable[[Array, Array], Array], kind: str) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        a, b = (scalar_reader(text, kind) for text in ins.operands)

        def step(g: Waves) -> None:
            g.scc = function(a(g), b(g))

        return step

    return build


def _compare_constant(function: Callable[[Array, Array], Array], kind: str) -> Builder:
    """S_CMPK: the second operand is 16 bits in the instruction, sign- or zero-extended."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        a, value = scalar_reader(ins.operands[0], kind), _immediate(ins.operands[1], kind == "i32")

        def step(g: Waves) -> None:
            g.scc = function(a(g), (_I if kind == "i32" else _U)(value))

        return step

    return build


def _immediate(text: str, signed: bool) -> int:
    value = int(text, 0) & 0xFFFF
    return value - 0x10000 if signed and value & 0x8000 else value


def _bit_compare(wanted: int, bits: int) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        a, b = scalar_reader(ins.operands[0], f"u{bits}"), scalar_reader(ins.operands[1], "u32")

        def step(g: Waves) -> None:
            x = a(g)
            g.scc = ((x >> (b(g) & _U(bits - 1)).astype(x.dtype)) & x.dtype.type(1)) == wanted

        return step

    return build


def _with_carry(subtracts: bool) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        a, b = (scalar_reader(text, "u32") for text in ins.operands[1:])
        write = scalar_writer(ins.operands[0], "u32")

        def step(g: Waves) -> None:
            x, y = a(g).astype(_I64), b(g).astype(_I64)
            total = x - y - g.scc if subtracts else x + y + g.scc
            write(g, (total & 0xFFFFFFFF).astype(_U))
            g.scc = (total < 0) | (total > 0xFFFFFFFF)

        return step

    return build


def _select(bits: int) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        a, b = (scalar_reader(text, f"u{bits}") for text in ins.operands[1:])
        write = scalar_writer(ins.operands[0], f"u{bits}")
        return lambda g: write(g, np.where(g.scc, a(g), b(g)))

    return build


def _conditional_move(bits: int) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        a, old = (scalar_reader(text, f"u{bits}") for text in (ins.operands[1], ins.operands[0]))
        write = scalar_writer(ins.operands[0], f"u{bits}")
        return lambda g: write(g, np.where(g.scc, a(g), old(g)))

    return build


def _constant_in_place(function: Callable[[Array, Array], Any], sets_scc: bool) -> Builder:
    """S_ADDK, S_MULK: the destination combined with a signed 16-bit constant."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        read, write = scalar_reader(ins.operands[0], "i32"), scalar_writer(ins.operands[0], "i32")
        value = _immediate(ins.operands[1], True)

        def step(g: Waves) -> None:
            result = function(read(g), np.full(g.count, value, _I))
            if sets_scc:
                result, g.scc = result
            write(g, result)

        return step

    return build


def _bit_set(value: int, bits: int) -> Builder:
    def build(ins: Instruction, kernel: Kernel) -> Step:
        old, at = scalar_reader(ins.operands[0], f"u{bits}"), scalar_reader(ins.operands[1], "u32")
        write, dtype = scalar_writer(ins.operands[0], f"u{bits}"), _U if bits == 32 else _U64

        def step(g: Waves) -> None:
            bit = dtype(1) << (at(g) & _U(bits - 1)).astype(dtype)
            write(g, old(g) | bit if value else old(g) & ~bit)

        return step

    return build


def _load(words: int, buffer: bool) -> Builder:
    """S_LOAD and S_BUFFER_LOAD: dwords from a uniform address, which is aligned to 4."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        base_registers = registers(ins.operands[1], 0)
        destination = registers(ins.operands[0], 0)
        if destination is None or base_registers is None or buffer:
            raise NotModelled(ins.text)
        base = scalar_reader(f"s[{base_registers.first}:{base_registers.first + 1}]", "u64")
        first, fixed, register = destination.first, ins.number("offset"), None
        if registers(ins.operands[2], 0) is not None:
            register = scalar_reader(ins.operands[2], "u32")
        else:
            fixed += int(ins.operands[2], 0)

        def step(g: Waves) -> None:
            address = base(g) + _U64(fixed & (1 << 64) - 1)
            if register is not None:
                address = address + register(g)
            places = (address & ~_U64(3)).tolist()
            uniform = places.count(places[0]) == len(places)
            for wave, place in enumerate(places[:1] if uniform else places):
                raw = np.frombuffer(g.machine.memory.block(place, 4 * words), _U)
                g.s[slice(None) if uniform else wave, first : first + words] = raw

        return step

    return build


BUILDERS: dict[str, Builder] = {
    **{name: _row(row) for name, row in ROWS.items()},
    **{name: _save(function) for name, function in _SAVES.items()},
    **{f"s_cmp_{n}_{k}": _compare(f, k) for n, f in _COMPARE.items() for k in ("i32", "u32", "u64")},
    **{f"s_cmpk_{n}_{k}": _compare_constant(f, k) for n, f in _COMPARE.items() for k in ("i32", "u32")},
    **{f"s_bitcmp{value}_b{bits}": _bit_compare(value, bits) for value in (0, 1) for bits in (32, 64)},
    **{f"s_bitset{value}_b{bits}": _bit_set(value, bits) for value in (0, 1) for bits in (32, 64)},
    **{f"s_cselect_b{bits}": _select(bits) for bits in (32, 64)},
    **{f"s_cmov_b{bits}": _conditional_move(bits) for bits in (32, 64)},
    "s_addc_u32": _with_carry(False),
    "s_subb_u32": _with_carry(True),
    "s_addk_i32": _constant_in_place(add_i32, True),
    "s_mulk_i32": _constant_in_place(np.multiply, False),
    **{f"s_load_dword{'' if n == 1 else f'x{n}'}": _load(n, False) for n in (1, 2, 4, 8, 16)},
    **{f"s_buffer_load_dword{'' if n == 1 else f'x{n}'}": _load(n, True) for n in (1, 2, 4, 8, 16)},
}

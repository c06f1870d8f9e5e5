"""Vector operations that came with gfx942 and gfx950: 8-bit floats, any function of three bits, swaps of rows.

ISA guide: "VOP1 Instructions", "VOP3A & VOP3B Instructions", also of the CDNA4 guide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.conversions import from_float8, pack, to_bfloat16, to_float8
from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.operands import vector_reader, vector_writer
from arena.platforms.cpu.amd_isa.valu import Kernel, Row, Step, compile_row, sources
from arena.platforms.cpu.amd_isa.vector_special import Builder, plain
from arena.platforms.cpu.amd_isa.waves import LANES, Waves

Array = Any
_U = np.uint32


def _permlane_swap(lanes: int) -> Builder:
    """Return the builder of V_PERMLANE_SWAP (gfx950): odd rows of one register change places with even ones."""
    even = np.nonzero(np.arange(LANES) // lanes % 2 == 0)[0]

    def build(ins: Instruction, kernel: Kernel) -> Step:
        plain(ins)
        a, b = (vector_reader(text, "u32", kernel.accumulators) for text in ins.operands)

        def step(g: Waves) -> None:
            if not g.full:
                raise NotModelled(f"{ins.name} with lanes that are off")
            first, second = a(g), b(g)
            kept = first[:, even + lanes].copy()
            first[:, even + lanes] = second[:, even]
            second[:, even] = kept

        return step

    return build


def _bitop3(kind: str) -> Builder:
    """Return the builder of V_BITOP3 (gfx950): any function of three bits, as a truth table."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        table = ins.number("bitop3")

        def function(a: Array, b: Array, c: Array) -> Array:
            result = np.zeros(np.broadcast_shapes(*(np.shape(x) for x in (a, b, c))), np.asarray(a).dtype)
            for row in range(8):
                if table >> row & 1:
                    bits = [x if row >> at & 1 else ~x for x, at in ((a, 2), (b, 1), (c, 0))]
                    result = result | (bits[0] & bits[1] & bits[2])
            return result

        bare = replace(ins, modifiers={k: v for k, v in ins.modifiers.items() if k != "bitop3"})
        return compile_row(bare, Row(kind, f"{kind} {kind} {kind}", function), kernel)

    return build


def _from_float8(name: str, pair: bool) -> Builder:
    """Return the builder of V_CVT_F32_FP8 and its like: one byte, or two to a pair of registers."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        if ins.modifiers.keys() - {"src0_sel", "dst_sel", "dst_unused"} or "dpp" in ins.encoding:
            raise NotModelled(ins.text)
        (read,) = sources(ins, ins.operands[1:], ["u32"], kernel)
        write = vector_writer(ins.operands[0], "u64" if pair else "f32", kernel.accumulators)

        def step(g: Waves) -> None:
            word = np.asarray(read(g))
            low = from_float8(word & _U(255), name, kernel.arch)
            if not pair:
                return write(g, low)
            high = from_float8((word >> _U(8)) & _U(255), name, kernel.arch)
            return write(g, low.view(_U).astype(np.uint64) | high.view(_U).astype(np.uint64) << np.uint64(32))

        return step

    return build


def _to_float8(name: str) -> Builder:
    """Return the builder of V_CVT_PK_FP8_F32 and its like: two bytes to the half that `op_sel` names."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        def function(a: Array, b: Array) -> Array:
            low, high = (_octets(x, name, kernel).astype(np.uint16) for x in (a, b))
            return low | high << np.uint16(8)

        return compile_row(ins, Row("u16", "f32 f32", function, keeps_half=True), kernel)

    return build


def _octets(x: Array, name: str, kernel: Kernel) -> Array:
    """Round to 8-bit floats; in the mode FP16_OVFL, finite numbers that are too large become the largest."""
    if kernel.saturates:
        values = from_float8(np.arange(128), name, kernel.arch)
        largest = values[np.isfinite(values)].max()
        x = np.where(np.isfinite(x), np.clip(x, -largest, largest), x)
    return to_float8(x, name, kernel.arch)


def _unscaled(ins: Instruction) -> Instruction:
    """Return the instruction without its scale. Raises `NotModelled` for any scale but 1."""
    if ins.operands[-1] != "1.0":
        raise NotModelled(f"a scale other than 1.0: {ins.text}")
    return replace(ins, operands=ins.operands[:-1])


def _to_float8_scaled(name: str) -> Builder:
    """Return the builder of V_CVT_SCALEF32_PK_FP8_F32 and its like (gfx950)."""
    plain_build = _to_float8(name)

    def build(ins: Instruction, kernel: Kernel) -> Step:
        half = ins.numbers("op_sel", (0, 0, 0, 0))[3]
        return plain_build(replace(_unscaled(ins), modifiers={"op_sel": f"[0,0,{half}]"}), kernel)

    return build


def _from_float8_scaled(name: str, to: str) -> Builder:
    """Return the builder of V_CVT_SCALEF32_PK_BF16_FP8 and its like: two bytes of the half that `op_sel` names."""

    def build(ins: Instruction, kernel: Kernel) -> Step:
        bare = _unscaled(ins)
        if bare.modifiers.keys() - {"op_sel"}:
            raise NotModelled(ins.text)
        shift = _U(16 * ins.numbers("op_sel", (0, 0, 0))[0])
        (read,) = sources(bare, bare.operands[1:], ["u32"], kernel)
        write = vector_writer(ins.operands[0], "u64" if to == "f32" else "u32", kernel.accumulators)

        def step(g: Waves) -> None:
            word = np.asarray(read(g)) >> shift
            low, high = (from_float8((word >> _U(n)) & _U(255), name, kernel.arch) for n in (0, 8))
            if to == "f32":
                write(g, low.view(_U).astype(np.uint64) | high.view(_U).astype(np.uint64) << np.uint64(32))
            elif to == "bf16":
                write(g, pack(to_bfloat16(low), to_bfloat16(high)))
            else:
                write(g, pack(low.astype(np.float16), high.astype(np.float16)))

        return step

    return build


BUILDERS: dict[str, Builder] = {
    "v_permlane16_swap_b32": _permlane_swap(16),
    "v_permlane32_swap_b32": _permlane_swap(32),
    "v_bitop3_b32": _bitop3("u32"),
    "v_bitop3_b16": _bitop3("u16"),
    **{f"v_cvt_f32_{name}": _from_float8(name, False) for name in ("fp8", "bf8")},
    **{f"v_cvt_pk_f32_{name}": _from_float8(name, True) for name in ("fp8", "bf8")},
    **{f"v_cvt_pk_{name}_f32": _to_float8(name) for name in ("fp8", "bf8")},
    **{f"v_cvt_scalef32_pk_{name}_f32": _to_float8_scaled(name) for name in ("fp8", "bf8")},
    **{
        f"v_cvt_scalef32_pk_{to}_{name}": _from_float8_scaled(name, to)
        for to in ("f32", "f16", "bf16")
        for name in ("fp8", "bf8")
    },
}

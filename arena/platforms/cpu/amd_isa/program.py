"""Compile a code object to blocks of steps, on demand, and say how control leaves each block.

ISA guide: "Program Flow Control", "SOPP Instructions". All mnemonics come together here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa import (
    atomics,
    conversions,
    matrix,
    packed,
    scalar,
    vector_float,
    vector_int,
    vector_memory,
    vector_newer,
    vector_special,
)
from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.faults import MachineFault, NotModelled
from arena.platforms.cpu.amd_isa.operands import scalar_reader, scalar_writer
from arena.platforms.cpu.amd_isa.valu import Kernel, Row, Step
from arena.platforms.cpu.amd_isa.waves import EXEC, VCC, Waves

Array = Any
BUILDERS: dict[str, Callable[[Instruction, Kernel], Step]] = {
    **vector_special.rows({**vector_float.ROWS, **vector_int.ROWS, **conversions.ROWS}),
    **vector_special.BUILDERS,
    **vector_newer.BUILDERS,
    **packed.BUILDERS,
    **scalar.BUILDERS,
    **vector_memory.BUILDERS,
    **atomics.BUILDERS,
}
NOTHING = {
    *("s_nop", "s_waitcnt", "s_sleep", "s_setprio", "s_icache_inv", "s_dcache_wb", "s_dcache_inv"),
    *("s_inst_prefetch", "s_ttracedata", "s_set_gpr_idx_off", "buffer_inv", "buffer_wbl2", "buffer_wbinvl1"),
    *("v_nop", "s_sendmsg", "s_code_end", "s_waitcnt_vscnt", "s_clause", "sched_barrier"),
}
"""waits, hints and cache operations: memory is coherent and in order here"""
_MODE = re.compile(r"^hwreg\(HW_REG_MODE(?:, (?P<first>\d+), (?P<bits>\d+))?\)$")
_SATURATES = 23
"""FP16_OVFL: an overflow of finite operands to float16 becomes the largest number"""
BARRIER, END = "barrier", "end"
Leaves = Callable[[Waves], Any]
"""where the waves go: an address, int64 [waves], `BARRIER` or `END`"""


@dataclass(frozen=True)
class Block:
    """Steps without a branch among them, and how control leaves."""

    steps: tuple[Step, ...]
    leave: Leaves
    following: int
    """address after the block, where waves go on after a barrier"""


class CompiledCode:
    """The instructions of one code object; addresses are those of the ELF file."""

    def __init__(self, instructions: dict[int, Instruction], kernel: Kernel) -> None:
        self._instructions = instructions
        self._blocks: dict[int, Block] = {}
        self._kernel = kernel

    @cached_property
    def _targets(self) -> frozenset[int]:
        branches = (i for i in self._instructions.values() if i.name.startswith(("s_branch", "s_cbranch", "s_call")))
        return frozenset(target(ins) for ins in branches)

    @cached_property
    def _saturates(self) -> bool:
        """Return whether the code sets FP16_OVFL. Raises `NotModelled` where it clears it again."""
        wrote = [i for i in self._instructions.values() if i.name == "s_setreg_imm32_b32" and _sets(i, _SATURATES)]
        if any(int(ins.operands[1], 0) != 1 for ins in wrote):
            raise NotModelled(f"a changing mode: {wrote[0].text}")
        return bool(wrote)

    def block(self, address: int) -> Block:
        """Return the block that begins at `address`, compiled the first time."""
        found = self._blocks.get(address)
        if found is None:
            found = self._blocks[address] = self._compile(address)
        return found

    def _compile(self, address: int) -> Block:
        steps: list[Step] = []
        at = address
        while True:
            ins = self._instructions.get(at)
            if ins is None:
                raise MachineFault(f"no instruction at {at:#x}")
            if at != address and at in self._targets:
                return Block(tuple(steps), _always(at), at)
            if ins.name in _LEAVES or ins.name.startswith("s_cbranch"):
                return Block(tuple(steps), _leave(ins), ins.following)
            if ins.name not in NOTHING:
                steps.append(self.step(ins))
            at = ins.following

    def step(self, ins: Instruction) -> Step:
        """Compile one instruction that does not branch. Raises `NotModelled` for an unknown one."""
        if ins.name in _OWN:
            return _OWN[ins.name](ins)
        build = BUILDERS.get(ins.name) or matrix.builder(ins.name)
        if build is None:
            raise NotModelled(f"instruction {ins.name}: {ins.text}")
        try:
            if self._saturates and ins.name == "v_cvt_pk_f16_f32":
                build = vector_special.rows({ins.name: _PACKED_SATURATED})[ins.name]
            elif self._saturates and ins.name in _TO_HALF:
                build = vector_special.rows({ins.name: _saturated(_TO_HALF[ins.name])})[ins.name]
            elif self._saturates and _may_overflow(ins.name):
                raise NotModelled(f"FP16_OVFL with {ins.name}")
            return build(ins, replace(self._kernel, saturates=self._saturates))
        except (IndexError, KeyError, ValueError) as problem:
            raise NotModelled(f"form of {ins.name}: {ins.text} ({type(problem).__name__} {problem})") from problem


_TO_HALF = {name: row for name, row in {**vector_float.ROWS, **conversions.ROWS}.items() if row.to == "f16"}
_UNAFFECTED = {
    *("v_cvt_f32_f16", "v_pack_b32_f16", "v_fma_mix_f32", *(name for name in BUILDERS if name.startswith("v_cmp"))),
    *("v_fma_mixlo_f16", "v_fma_mixhi_f16"),  # `packed` has them saturate
}


_PACKED_SATURATED = Row(
    "u32",
    "f32 f32",
    lambda *sources: conversions.pack(*(vector_float.saturated(x.astype(np.float16), [x]) for x in sources)),
)


def _may_overflow(name: str) -> bool:
    """Return whether an instruction that is not made to saturate rounds to float16, which the mode changes."""
    return "f16" in name and name not in _UNAFFECTED and not name.startswith(("v_mfma", "v_cvt_scalef32_pk_f16"))


def _saturated(row: Row) -> Row:
    return row._replace(function=lambda *sources: vector_float.saturated(row.function(*sources), sources))


def target(ins: Instruction) -> int:
    """Return the address that a branch names: its immediate counts dwords from the next instruction."""
    words = int(ins.operands[-1], 0)
    return ins.following + 4 * (words - 0x10000 if words & 0x8000 else words)


def _always(address: int) -> Leaves:
    return lambda g: address


def _leave(ins: Instruction) -> Leaves:
    special = _LEAVES.get(ins.name)
    if special is not None:
        return special(ins)
    condition = _CONDITIONS.get(ins.name)
    if condition is None:
        raise NotModelled(f"instruction {ins.name}: {ins.text}")
    taken, otherwise = target(ins), ins.following

    def leave(g: Waves) -> Any:
        flags = condition(g)
        if flags.all():
            return taken
        return np.where(flags, taken, otherwise) if flags.any() else otherwise

    return leave


_CONDITIONS: dict[str, Callable[[Waves], Array]] = {
    "s_cbranch_scc0": lambda g: ~np.asarray(g.scc, bool),
    "s_cbranch_scc1": lambda g: np.asarray(g.scc, bool),
    "s_cbranch_vccz": lambda g: g.s64[:, VCC // 2] == 0,
    "s_cbranch_vccnz": lambda g: g.s64[:, VCC // 2] != 0,
    "s_cbranch_execz": lambda g: g.s64[:, EXEC // 2] == 0,
    "s_cbranch_execnz": lambda g: g.s64[:, EXEC // 2] != 0,
}


def _jump(ins: Instruction) -> Leaves:
    """S_SETPC and S_SWAPPC: to the address in a register pair; the second keeps where it came from."""
    read = scalar_reader(ins.operands[-1], "i64")
    keep = scalar_writer(ins.operands[0], "i64") if ins.name == "s_swappc_b64" else None

    def leave(g: Waves) -> Any:
        to = read(g) - g.machine.base
        if keep is not None:
            keep(g, np.full(g.count, ins.following + g.machine.base, np.int64))
        return int(to[0]) if (to == to[0]).all() else to

    return leave


def _call(ins: Instruction) -> Leaves:
    keep, to = scalar_writer(ins.operands[0], "i64"), target(ins)

    def leave(g: Waves) -> Any:
        keep(g, np.full(g.count, ins.following + g.machine.base, np.int64))
        return to

    return leave


def _trap(ins: Instruction) -> Leaves:
    def leave(g: Waves) -> Any:
        raise MachineFault(f"trap: {ins.text}")

    return leave


_LEAVES: dict[str, Callable[[Instruction], Leaves]] = {
    "s_branch": lambda ins: _always(target(ins)),
    "s_barrier": lambda ins: lambda g: BARRIER,
    "s_endpgm": lambda ins: lambda g: END,
    "s_setpc_b64": _jump,
    "s_swappc_b64": _jump,
    "s_call_b64": _call,
    "s_trap": _trap,
}


def _get_pc(ins: Instruction) -> Step:
    write = scalar_writer(ins.operands[0], "i64")
    return lambda g: write(g, np.full(g.count, ins.following + g.machine.base, np.int64))


def _sets(ins: Instruction, bit: int) -> bool:
    found = _MODE.match(ins.operands[0])
    if found is None:
        return False
    first, bits = int(found["first"] or 0), int(found["bits"] or 32)
    return first <= bit < first + bits


def _set_mode(ins: Instruction) -> Step:
    """S_SETREG of the mode: denormals are kept whatever it says; its rounding and exceptions must stay as they are."""
    if not _MODE.match(ins.operands[0]) or any(_sets(ins, bit) for bit in (0, 1, 2, 3, 8, 9)):
        raise NotModelled(ins.text)
    return lambda g: None


_OWN: dict[str, Callable[[Instruction], Step]] = {
    "s_getpc_b64": _get_pc,
    "s_setreg_imm32_b32": _set_mode,
}

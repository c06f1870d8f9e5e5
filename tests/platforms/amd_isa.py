"""Single instructions of `arena.platforms.cpu.amd_isa` on registers that a test fills."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.disassembly import Instruction, instruction
from arena.platforms.cpu.amd_isa.execute import Execution
from arena.platforms.cpu.amd_isa.memory import ByteArray, DeviceMemory
from arena.platforms.cpu.amd_isa.program import CompiledCode
from arena.platforms.cpu.amd_isa.valu import Kernel
from arena.platforms.cpu.amd_isa.waves import EXEC, LANES, SGPRS, VCC, BatchState, Waves

Array = Any
VECTORS, ACCUMULATORS = 128, 64
"""vector registers of the tests' waves; the accumulation registers begin at the second number"""
ALL = (1 << 64) - 1
LDS_BYTES = 1024


def machine(memory: DeviceMemory | None = None, workgroups: int = 1) -> BatchState:
    """LDS of `LDS_BYTES` a workgroup, scratch of 64 bytes a lane."""
    lds = ByteArray(np.zeros(LDS_BYTES * workgroups, np.uint8), "LDS")
    scratch = ByteArray(np.zeros(64 * LANES * 4 * workgroups, np.uint8), "scratch")
    return BatchState(memory or DeviceMemory(), lds, LDS_BYTES, LDS_BYTES, scratch, 64, 0)


def waves(count: int = 1, memory: DeviceMemory | None = None) -> Waves:
    """Waves of one workgroup whose registers are 0 and whose lanes are all on."""
    scalars = np.zeros((count, SGPRS), np.uint32)
    scalars[:, EXEC : EXEC + 2] = 0xFFFFFFFF
    vectors = np.zeros((VECTORS, count, LANES), np.uint32)
    numbers = np.arange(count)
    return Waves(machine(memory), scalars, vectors, np.zeros(count, bool), np.zeros(count, np.int64), numbers)


def step(group: Waves, text: str, arch: str = "gfx942") -> Waves:
    """Execute one instruction that does not branch."""
    with np.errstate(all="ignore"):  # as `Execution` does
        CompiledCode({}, Kernel(ACCUMULATORS, arch)).step(instruction(text))(group)
    return group


def run(group: Waves, text: str) -> Waves:
    """Execute a program: one instruction a line, each of 4 bytes, at 0, 4, 8 and so on."""
    lines = [line.strip() for line in text.strip().splitlines()]
    listed: dict[int, Instruction] = {4 * n: instruction(line, 4 * n, 4) for n, line in enumerate(lines)}
    Execution(CompiledCode(listed, Kernel(ACCUMULATORS)), group, 0, float("inf")).run()
    return group


def set_exec(group: Waves, mask: int) -> None:
    """Choose the active lanes of every wave."""
    group.s.view(np.uint64)[:, EXEC // 2] = mask
    group.exec_changed()


def set_vcc(group: Waves, mask: int) -> None:
    """Set VCC of every wave."""
    group.s.view(np.uint64)[:, VCC // 2] = mask


def vcc(group: Waves) -> int:
    """VCC of the first wave."""
    return int(group.s.view(np.uint64)[0, VCC // 2])


def bits32(value: float) -> int:
    """The 32 bits of a float."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def float32(bits: int) -> float:
    """The float of 32 bits."""
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def bits16(value: float) -> int:
    """The 16 bits of a float16."""
    return int(struct.unpack("<H", struct.pack("<e", value))[0])


def bits64(value: float) -> int:
    """The 64 bits of a float64."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def put64(group: Waves, register: int, values: Array) -> None:
    """Set a pair of vector registers of every wave from 64-bit integers of the lanes."""
    wide = np.broadcast_to(np.asarray(values, np.uint64), (LANES,))
    group.v[register], group.v[register + 1] = wide & np.uint64(0xFFFFFFFF), wide >> np.uint64(32)


def get64(group: Waves, register: int) -> list[int]:
    """The 64-bit integers in a pair of vector registers of the first wave."""
    low, high = group.v[register, 0].astype(np.uint64), group.v[register + 1, 0].astype(np.uint64)
    return [int(value) for value in low | high << np.uint64(32)]

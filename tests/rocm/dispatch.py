"""Execute one kernel dispatch packet as a GPU's command processor starts it: from packet and kernel descriptor alone.

Sources: HSA Platform System Architecture Specification, "Kernel dispatch packet"; LLVM's "User Guide for AMDGPU
Backend", "Kernel Descriptor" and "Initial Kernel Execution State". What the HIP runtime decides, such as hidden
arguments, is taken from memory: `arena/platforms/cpu/amd_isa/launch.py`, which has no runtime, works it out itself.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.disassembly import Instruction
from arena.platforms.cpu.amd_isa.execute import Execution
from arena.platforms.cpu.amd_isa.faults import MachineFault, NotModelled
from arena.platforms.cpu.amd_isa.memory import NOT_PROVIDED, ByteArray
from arena.platforms.cpu.amd_isa.program import CompiledCode
from arena.platforms.cpu.amd_isa.valu import Kernel
from arena.platforms.cpu.amd_isa.waves import EXEC, LANES, SGPRS, BatchState, Waves
from tests.rocm.device_memory import ProcessMemory
from tests.rocm.machine_code import CodeOfKernels

Array = Any
Size = tuple[int, int, int]
PACKET = struct.Struct("<HHHHHHIIIIIQQQQ")
_SERVICE = NOT_PROVIDED << 32
_BATCH_BYTES = 96 << 20
_LDS_BYTES = {"gfx90a": 64 << 10, "gfx942": 64 << 10, "gfx950": 160 << 10}
_MOST_THREADS = 1024
_POISON = 0xFFC0DEAD
_PRELOAD_SKIP = 256
_DESCRIPTOR_BYTES = 64
_ROUNDING, _CLAMPS_NAN = 0xF << 12, 1 << 21
_WAVE32, _DYNAMIC_STACK = 1 << 10, 1 << 11
_NAME = 12
_DEFAULT_DEADLINE = float("inf")


@dataclass(frozen=True)
class Dispatch:
    """A kernel dispatch packet; sizes in threads, segments in bytes, addresses of the device."""

    workgroup: Size
    grid: Size
    private_bytes: int
    lds_bytes: int
    descriptor: int
    kernarg: int

    @classmethod
    def of(cls, packet: bytes) -> Dispatch:
        """Decode the 64 bytes of a packet."""
        fields = PACKET.unpack(packet)
        return cls(fields[2:5], fields[6:9], fields[9], fields[10], fields[11], fields[12])

    @property
    def workgroups(self) -> Size:
        """How many there are in x, y and z; the last one of an axis may be smaller."""
        x, y, z = (-(-size // group) for size, group in zip(self.grid, self.workgroup, strict=True))
        return x, y, z


@dataclass(frozen=True)
class Descriptor:
    """A kernel descriptor as hardware reads it."""

    entry: int
    """distance of the first instruction from the descriptor"""
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int
    preload: int
    kernarg_bytes: int

    @classmethod
    def of(cls, raw: bytes) -> Descriptor:
        """Decode 64 bytes."""
        if len(raw) < _DESCRIPTOR_BYTES:
            raise MachineFault("the kernel object lies in no buffer of the process")
        (entry,) = struct.unpack_from("<q", raw, 16)
        rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", raw, 44)
        return cls(entry, rsrc1, rsrc2, rsrc3, properties, preload, struct.unpack_from("<I", raw, 8)[0])

    @property
    def accumulators(self) -> int:
        """Number of the first accumulation register."""
        return 4 * ((self.rsrc3 & 0x3F) + 1)

    @property
    def vectors(self) -> int:
        """Vector registers that a wave has, those for accumulation among them."""
        return max(8 * ((self.rsrc1 & 0x3F) + 1), self.accumulators)

    @property
    def preload_words(self) -> int:
        """Words of the kernel arguments that are in registers at the start."""
        return self.preload & 0x7F


class Processor:
    """Executes the packets of one process."""

    def __init__(self, arch: str, memory: ProcessMemory, code: CodeOfKernels) -> None:
        self._arch, self._memory, self._code = arch, memory, code
        self._kept: dict[tuple[int, int], tuple[bytes, CompiledCode, str]] = {}

    def run(self, packet: bytes, address: int, deadline: float = _DEFAULT_DEADLINE) -> str:
        """Execute a dispatch to its end, and return a name for its code, by content. `address`: the packet's.

        Raises `NotModelled` and `MachineFault`.
        """
        dispatch = Dispatch.of(packet)
        descriptor = Descriptor.of(self._memory.window(dispatch.descriptor, _DESCRIPTOR_BYTES))
        _check(dispatch, descriptor, self._arch)
        try:
            entry = dispatch.descriptor + descriptor.entry
            program, name = self._program(entry, descriptor)
            _Run(program, entry, self._memory, dispatch, descriptor, address).run(deadline)
            return name
        finally:
            self._memory.give_back()

    def _program(self, entry: int, descriptor: Descriptor) -> tuple[CompiledCode, str]:
        """Return the code at an entry, which is another one where the memory's content is."""
        key = entry, descriptor.accumulators
        kept = self._kept.get(key)
        if kept is None or self._memory.window(entry, len(kept[0])) != kept[0]:
            raw, instructions = self._code.read(lambda size: self._memory.window(entry, size))
            reached = {at: ins for at, ins in instructions.items() if at < len(raw)}
            name = hashlib.sha256(raw).hexdigest()[:_NAME]
            self._kept[key] = kept = raw, self._compiled(reached, descriptor), name
        return kept[1:]

    def _compiled(self, instructions: dict[int, Instruction], descriptor: Descriptor) -> CompiledCode:
        if not descriptor.rsrc1 & _CLAMPS_NAN and any("clamp" in ins.modifiers for ins in instructions.values()):
            raise NotModelled("a clamp that keeps NaN")
        return CompiledCode(instructions, Kernel(descriptor.accumulators, self._arch))


def _check(dispatch: Dispatch, descriptor: Descriptor, arch: str) -> None:
    threads = int(np.prod(dispatch.workgroup))
    if descriptor.properties & _WAVE32:
        raise MachineFault(f"the kernel is for waves of 32 lanes, {arch} has {LANES}")
    if descriptor.rsrc1 & _ROUNDING:
        raise NotModelled("a rounding mode other than the usual one")
    if not 0 < threads <= _MOST_THREADS or 0 in dispatch.grid:
        raise MachineFault(f"a grid of {dispatch.grid} threads in workgroups of {dispatch.workgroup}")
    if dispatch.lds_bytes > _LDS_BYTES[arch]:
        raise MachineFault(f"LDS overflow: {dispatch.lds_bytes} bytes asked for a workgroup")


@dataclass
class _Run:
    program: CompiledCode
    base: int
    memory: ProcessMemory
    dispatch: Dispatch
    descriptor: Descriptor
    packet: int

    def run(self, deadline: float) -> None:
        """Execute batch after batch of workgroups."""
        threads = int(np.prod(self.dispatch.workgroup))
        waves = -(-threads // LANES)
        per_wave = LANES * (4 * self.descriptor.vectors + self.dispatch.private_bytes)
        batch = max(1, _BATCH_BYTES // (waves * per_wave + self.dispatch.lds_bytes + 1))
        count = int(np.prod(self.dispatch.workgroups))
        entry = _PRELOAD_SKIP if self.descriptor.preload_words else 0
        for first in range(0, count, batch):
            group = self._batch(np.arange(first, min(first + batch, count)), waves)
            Execution(self.program, group, entry, deadline).run()

    def _batch(self, workgroups: Array, waves: int) -> Waves:
        """Return the waves of these workgroups in their initial state; a wave without threads does not exist."""
        dispatch = self.dispatch
        count = len(workgroups) * waves
        pitch = max(16, -(-dispatch.lds_bytes // 16) * 16)
        scratch = -(-dispatch.private_bytes // 16) * 16
        lds = np.full(len(workgroups) * pitch // 4, _POISON, np.uint32).view(np.uint8)
        held = np.full(max(4, count * LANES * scratch // 4), _POISON, np.uint32).view(np.uint8)
        state = BatchState(
            self.memory,
            ByteArray(lds, "LDS"),
            dispatch.lds_bytes,
            pitch,
            ByteArray(held, "scratch"),
            scratch,
            self.base,
        )
        numbers = self._numbers(np.repeat(workgroups, waves))
        x, y, z = (
            np.minimum(size - number * group, group)
            for size, number, group in zip(dispatch.grid, numbers, dispatch.workgroup, strict=True)
        )
        wave = np.tile(np.arange(waves), len(workgroups))
        active = np.clip(x * y * z - wave * LANES, 0, LANES)
        scalars = np.full((count, SGPRS), _POISON, np.uint32)
        self._scalars(scalars, numbers)
        full = active == LANES
        some = (np.uint64(1) << (active % LANES).astype(np.uint64)) - np.uint64(1)
        scalars.view(np.uint64)[:, EXEC // 2] = np.where(full, ~np.uint64(0), some)
        vector = np.full((self.descriptor.vectors, count, LANES), _POISON, np.uint32)
        thread = wave[:, None] * LANES + np.arange(LANES)
        across, down = x[:, None], y[:, None]
        vector[0] = thread % across | thread // across % down << 10 | thread // (across * down) << 20
        group = np.repeat(np.arange(len(workgroups)), waves)
        whole = Waves(state, scalars, vector, np.zeros(count, bool), group, np.arange(count))
        return whole if active.all() else whole.take(np.nonzero(active)[0])

    def _numbers(self, workgroups: Array) -> tuple[Array, Array, Array]:
        x, y, _ = self.dispatch.workgroups
        return workgroups % x, workgroups // x % y, workgroups // (x * y)

    def _scalars(self, scalars: Array, numbers: tuple[Array, Array, Array]) -> None:
        """Fill user registers in the order of the descriptor's bits, preloaded arguments, and workgroup numbers."""
        descriptor, at = self.descriptor, 0
        service = (_SERVICE & 0xFFFFFFFF, _SERVICE >> 32)
        registers: tuple[tuple[int, ...], ...] = (
            service * 2,  # private segment buffer
            _words(self.packet),
            service,  # queue
            _words(self.dispatch.kernarg),
            (0, 0),  # dispatch number
            service,  # flat scratch, which this architecture has in hardware
            (self.dispatch.private_bytes,),
        )
        for bit, words in enumerate(registers):
            if descriptor.properties >> bit & 1:
                scalars[:, at : at + len(words)] = words
                at += len(words)
        if descriptor.preload_words:
            first = self.dispatch.kernarg + 4 * (descriptor.preload >> 7)
            preloaded = np.frombuffer(self.memory.block(first, 4 * descriptor.preload_words), np.uint32)
            scalars[:, at : at + len(preloaded)] = preloaded
            at += len(preloaded)
        for bit, number in zip((7, 8, 9), numbers, strict=True):
            if descriptor.rsrc2 >> bit & 1:
                scalars[:, at] = number
                at += 1


def _words(address: int) -> tuple[int, int]:
    return address & 0xFFFFFFFF, address >> 32

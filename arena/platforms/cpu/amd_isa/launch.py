"""Launch a kernel of a code object: kernel arguments, hidden arguments, initial registers, batches of workgroups.

LLVM's "User Guide for AMDGPU Backend": "Initial Kernel Execution State", "Kernel Descriptor", "Code Object Metadata".
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.disassembly import disassemble
from arena.platforms.cpu.amd_isa.execute import TOGETHER, Execution
from arena.platforms.cpu.amd_isa.faults import MachineFault, NotModelled
from arena.platforms.cpu.amd_isa.memory import NOT_PROVIDED, ByteArray, DeviceMemory
from arena.platforms.cpu.amd_isa.program import CompiledCode
from arena.platforms.cpu.amd_isa.valu import Kernel
from arena.platforms.cpu.amd_isa.waves import EXEC, LANES, SGPRS, BatchState, Waves
from arena.platforms.rocm.amd_code_object import CodeObject, KernelMetadata, Parameter

Array = Any
Size = tuple[int, int, int]
_SERVICE = NOT_PROVIDED << 32
_PACKET = struct.Struct("<HHHHHHIIIIIQQQQ")
"""a dispatch packet of HSA: header, dimensions, workgroup, grid, segments, kernel, arguments, signal"""
_PRELOAD_SKIP = 256
"""bytes before the code of a kernel whose arguments are preloaded: loads for firmware that cannot"""
_BATCH_BYTES = 96 << 20
"""vector registers, LDS and scratch of the workgroups that are resident at once"""
_LDS_LIMIT = {"gfx942": 64 << 10, "gfx950": 160 << 10}
_POISON = 0xFFC0DEAD
"""what registers and LDS hold before they are written: NaN as float32"""
MOST_THREADS = 1024
_ROUNDING, _CLAMPS_NAN = 0xF << 12, 1 << 21
"""FLOAT_ROUND_MODE, 0 to the nearest even; DX10_CLAMP, by which a clamp takes NaN for 0"""


@dataclass(frozen=True)
class Launch:
    """One kernel launch as a runtime sees it."""

    kernel: str
    grid: Size
    """workgroups"""
    block: Size
    """threads of a workgroup"""
    dynamic_lds: int
    arguments: bytes
    """the explicit arguments at the offsets of the kernel's metadata"""


class LoadedCode:
    """A code object in the memory of a device, with its decoded instructions."""

    def __init__(self, code_object: bytes, arch: str, memory: DeviceMemory, objdump: Path) -> None:
        self.code = CodeObject(code_object)
        self.arch, self._memory, self._objdump = arch, memory, objdump
        self._image = self.code.load()
        self.base = memory.add_array(self._image, "the code object")
        self._programs: dict[int, CompiledCode] = {}

    @cached_property
    def _instructions(self) -> dict[int, Any]:
        return disassemble(self.code.data, self._objdump)

    def variable(self, name: str) -> tuple[int, int]:
        """Return address and size of a global variable."""
        address, size = self.code.symbols[name]
        return self.base + address, size

    def run(self, launch: Launch, deadline: float = float("inf"), order: int = TOGETHER) -> None:
        """Execute a launch to its end. Raises `NotModelled` and `MachineFault`."""
        metadata = self.code.kernels.get(launch.kernel)
        if metadata is None:
            raise MachineFault(f"no kernel {launch.kernel} in the code object")
        _Run(self, metadata, launch, deadline).run(order)

    def mnemonics(self) -> Counter[str]:
        """Return how often each mnemonic stands in the code."""
        return Counter(ins.name for ins in self._instructions.values())

    def program(self, metadata: KernelMetadata) -> tuple[CompiledCode, int, int]:
        """Return the program for a kernel, its vector registers, and the number of the first accumulator."""
        vectors = max(metadata.vgprs, 1)
        first = vectors - metadata.agprs if metadata.agprs else vectors
        if first not in self._programs:
            self._programs[first] = CompiledCode(self._instructions, Kernel(first, self.arch))
        return self._programs[first], vectors, first

    @property
    def memory(self) -> DeviceMemory:
        """The device's memory."""
        return self._memory


class _Run:
    def __init__(self, loaded: LoadedCode, metadata: KernelMetadata, launch: Launch, deadline: float) -> None:
        self._loaded, self._metadata, self._launch, self._deadline = loaded, metadata, launch, deadline
        self._descriptor = loaded.code.descriptor(metadata)
        self._threads = int(np.prod(launch.block))
        self._lds_bytes = metadata.lds_bytes + launch.dynamic_lds
        self._check()

    def _check(self) -> None:
        if self._metadata.wave_size != LANES:
            raise NotModelled(f"waves of {self._metadata.wave_size} lanes")
        if self._descriptor.rsrc1 & _ROUNDING or not self._descriptor.rsrc1 & _CLAMPS_NAN:
            raise NotModelled("a rounding or clamping mode other than the usual one")
        if self._metadata.dynamic_stack:
            raise NotModelled("a stack of unknown size")
        if not 0 < self._threads <= MOST_THREADS:
            raise MachineFault(f"a workgroup of {self._threads} threads, at most {MOST_THREADS} are possible")
        if self._lds_bytes > _LDS_LIMIT[self._loaded.arch]:
            raise MachineFault(f"LDS overflow: {self._lds_bytes} bytes asked for a workgroup")

    def run(self, order: int) -> None:
        """Execute batch after batch of workgroups, their waves in one of the orders of `execute`."""
        count = int(np.prod(self._launch.grid))
        waves = -(-self._threads // LANES)
        program, vectors, _ = self._loaded.program(self._metadata)
        per_wave = LANES * (4 * vectors + self._metadata.scratch_bytes)
        batch = max(1, _BATCH_BYTES // (waves * per_wave + self._lds_bytes + 1))
        kernarg = np.zeros(-(-max(self._metadata.kernarg_size, 1) // 64) * 64, np.uint8)
        raw = self._arguments()
        kernarg[: len(raw)] = np.frombuffer(raw, np.uint8)
        address = self._loaded.memory.add_array(kernarg, "the kernel arguments")
        self._packet = self._dispatch_packet(address)
        packet = self._loaded.memory.add_array(self._packet, "the dispatch packet")
        entry = self._descriptor.entry + (_PRELOAD_SKIP if self._descriptor.preload_words else 0)
        try:
            for first in range(0, count, batch):
                group = self._batch(np.arange(first, min(first + batch, count)), waves, vectors, kernarg, address)
                ranks = order * (group.slot % waves) if order else None
                Execution(program, group, entry, self._deadline, ranks).run()
                if time.monotonic() > self._deadline:
                    raise NotModelled("the execution does not end in time")
        finally:
            self._loaded.memory.remove(address)
            self._loaded.memory.remove(packet)

    def _dispatch_packet(self, kernarg: int) -> Array:
        """Return the packet by which a queue would start this launch."""
        grid = [blocks * size for blocks, size in zip(self._launch.grid, self._launch.block, strict=True)]
        sizes = (*self._launch.block, 0, *grid, self._metadata.scratch_bytes, self._lds_bytes)
        packet = _PACKET.pack(0, _dimensions(self._launch), *sizes, _SERVICE, kernarg, 0, 0)
        return np.frombuffer(bytearray(packet), np.uint8)

    def _batch(self, workgroups: Array, waves: int, vectors: int, kernarg: Array, address: int) -> Waves:
        """Return the waves of these workgroups in their initial state."""
        count = len(workgroups) * waves
        pitch = max(16, -(-self._lds_bytes // 16) * 16)
        scratch = -(-self._metadata.scratch_bytes // 16) * 16
        lds = np.full(len(workgroups) * pitch // 4, _POISON, np.uint32).view(np.uint8)
        held = np.full(max(4, count * LANES * scratch // 4), _POISON, np.uint32).view(np.uint8)
        machine = BatchState(
            self._loaded.memory,
            ByteArray(lds, "LDS"),
            self._lds_bytes,
            pitch,
            ByteArray(held, "scratch"),
            scratch,
            self._loaded.base,
        )
        scalars = np.full((count, SGPRS), _POISON, np.uint32)
        vector = np.full((vectors, count, LANES), _POISON, np.uint32)
        wave = np.tile(np.arange(waves), len(workgroups))
        self._scalars(scalars, np.repeat(workgroups, waves), kernarg, address)
        thread = wave[:, None] * LANES + np.arange(LANES)
        x, y, _ = self._launch.block
        vector[0] = thread % x | thread // x % y << 10 | thread // (x * y) << 20
        active = np.minimum(self._threads - wave * LANES, LANES).astype(np.uint64)
        ones = np.where(active == LANES, ~np.uint64(0), (np.uint64(1) << (active % np.uint64(64))) - np.uint64(1))
        scalars.view(np.uint64)[:, EXEC // 2] = ones
        numbers = np.repeat(np.arange(len(workgroups)), waves)
        return Waves(machine, scalars, vector, np.zeros(count, bool), numbers, np.arange(count))

    def _scalars(self, scalars: Array, workgroups: Array, kernarg: Array, address: int) -> None:
        """Fill user registers in the order of the descriptor's bits, preloaded arguments, and workgroup numbers."""
        descriptor, at = self._descriptor, 0
        service, packet = (_SERVICE & 0xFFFFFFFF, _SERVICE >> 32), self._packet.ctypes.data
        registers: tuple[tuple[int, ...], ...] = (
            service * 2,  # private segment buffer
            (packet & 0xFFFFFFFF, packet >> 32),
            service,  # queue
            (address & 0xFFFFFFFF, address >> 32),
            (0, 0),  # dispatch number
            service,  # flat scratch, which this architecture has in hardware
            (self._metadata.scratch_bytes,),
        )
        for bit, words in enumerate(registers):
            if descriptor.properties >> bit & 1:
                scalars[:, at : at + len(words)] = words
                at += len(words)
        if descriptor.preload_words:
            first = 4 * descriptor.preload_offset
            preloaded = kernarg[first : first + 4 * descriptor.preload_words].view(np.uint32)
            scalars[:, at : at + len(preloaded)] = preloaded
            at += descriptor.preload_words
        x, y, _ = self._launch.grid
        numbers = (workgroups % x, workgroups // x % y, workgroups // (x * y))
        for bit, number in zip((7, 8, 9), numbers, strict=True):
            if descriptor.rsrc2 >> bit & 1:
                scalars[:, at] = number
                at += 1

    def _arguments(self) -> bytes:
        """Return the kernel argument segment: explicit arguments, then what the runtime supplies."""
        segment = bytearray(max(self._metadata.kernarg_size, len(self._launch.arguments)))
        segment[: len(self._launch.arguments)] = self._launch.arguments
        for parameter in self._metadata.parameters:
            if parameter.hidden:
                value = self._hidden(parameter)
                segment[parameter.offset : parameter.offset + parameter.size] = value
        return bytes(segment)

    def _hidden(self, parameter: Parameter) -> bytes:
        kind = parameter.value_kind.removeprefix("hidden_")
        axis = "xyz".find(kind[-1])
        values = {"grid_dims": _dimensions(self._launch), "dynamic_lds_size": self._launch.dynamic_lds, "none": 0}
        by_axis = {"block_count": self._launch.grid, "group_size": self._launch.block}
        by_axis |= {"remainder": (0, 0, 0), "global_offset": (0, 0, 0)}
        value = by_axis[kind[:-2]][axis] if kind[:-2] in by_axis else values.get(kind, _SERVICE)
        return struct.pack("<Q", value)[: parameter.size].ljust(parameter.size, b"\0")


def _dimensions(launch: Launch) -> int:
    sizes = [grid * block for grid, block in zip(launch.grid, launch.block, strict=True)]
    return max((axis + 1 for axis, size in enumerate(sizes) if size > 1), default=1)


def pack_arguments(metadata: KernelMetadata, values: Sequence[bytes]) -> bytes:
    """Return the explicit arguments at their offsets. `values`: the bytes of each, in order."""
    explicit = [parameter for parameter in metadata.parameters if not parameter.hidden]
    if len(values) != len(explicit):
        raise MachineFault(f"{metadata.name}: {len(values)} arguments, expected {len(explicit)}")
    segment = bytearray(max((p.offset + p.size for p in explicit), default=0))
    for parameter, value in zip(explicit, values, strict=True):
        segment[parameter.offset : parameter.offset + parameter.size] = value[: parameter.size].ljust(
            parameter.size, b"\0"
        )
    return bytes(segment)

"""Packets, descriptors and memory of the simulated device, without ROCm: code is written here as instructions."""

from __future__ import annotations

import mmap
import os
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from arena.platforms.cpu.amd_isa.disassembly import Instruction, instruction
from arena.platforms.cpu.amd_isa.faults import MachineFault
from arena.platforms.rocm.amd_code_object import CodeObject
from tests.rocm.device import ADD, DISPATCH, REMOVE, REPLY, REQUEST, reply
from tests.rocm.device_memory import ProcessMemory
from tests.rocm.dispatch import PACKET, Descriptor, Dispatch, Processor
from tests.rocm.machine_code import CodeOfKernels, code_object, reach

_BYTES = 1 << 16
_AT = 0x7F00_0000_0000
_CODE, _ARGUMENTS, _DATA = _AT + 0x1000, _AT + 0x2000, _AT + 0x3000
_CLAMPS_NAN, _KERNARG, _DISPATCH = 1 << 21, 1 << 3, 1 << 1
_GROUP_X, _GROUP_Y = 1 << 7, 1 << 8
KERNEL = (
    "s_load_dwordx2 s[4:5], s[0:1], 0x0",
    "s_waitcnt lgkmcnt(0)",
    "s_lshl_b32 s6, s2, 8",
    "v_and_b32_e32 v1, 0x3ff, v0",
    "v_lshlrev_b32_e32 v1, 2, v1",
    "v_add_u32_e32 v1, s6, v1",
    "v_mov_b32_e32 v2, 1",
    "global_store_dword v1, v2, s[4:5]",
    "s_endpgm",
)
"""writes 1 for each thread; workgroups of 64 threads"""


class WrittenCode(CodeOfKernels):
    """A kernel that a test has written."""

    def __init__(self, lines: tuple[str, ...] = KERNEL) -> None:
        self._lines = lines

    def read(self, window: object) -> tuple[bytes, dict[int, Instruction]]:
        found = {4 * n: instruction(line, 4 * n) for n, line in enumerate(self._lines)}
        return bytes(4 * len(found)), found


def descriptor(properties: int = _KERNARG, rsrc1: int = _CLAMPS_NAN) -> bytes:
    raw = bytearray(64)
    struct.pack_into("<Iq", raw, 8, 8, 0)
    struct.pack_into("<q", raw, 16, _CODE - _AT)
    struct.pack_into("<IIIHH", raw, 44, 0, rsrc1, _GROUP_X, properties, 0)
    return bytes(raw)


def packet(grid: int = 128, kernarg: int = _ARGUMENTS, lds: int = 0) -> bytes:
    return PACKET.pack(2, 1, 64, 1, 1, 0, grid, 1, 1, 0, lds, _AT, kernarg, 0, 0)


@pytest.fixture
def memory() -> ProcessMemory:
    file = os.memfd_create("test")
    os.truncate(file, _BYTES)
    made = ProcessMemory(os.getpid())
    made.share(7, _AT, _BYTES, file)
    with mmap.mmap(file, _BYTES) as mapped:
        mapped[:64] = descriptor()
        mapped[0x2000:0x2008] = struct.pack("<Q", _DATA)
    os.close(file)
    return made


def run(memory: ProcessMemory, raw: bytes, lines: tuple[str, ...] = KERNEL) -> None:
    Processor("gfx942", memory, WrittenCode(lines)).run(raw, _AT + 0x800)


def written(memory: ProcessMemory) -> list[int]:
    return list(struct.unpack("<256I", memory.window(_DATA, 4 * 256)))


def test_every_thread_of_a_grid_runs_once(memory: ProcessMemory) -> None:
    run(memory, packet(128))
    assert written(memory) == [1] * 128 + [0] * 128


def test_the_last_workgroup_of_a_grid_may_be_smaller(memory: ProcessMemory) -> None:
    run(memory, packet(100))
    assert written(memory) == [1] * 100 + [0] * 156


def test_a_grid_in_two_axes_counts_workgroups_along_x_first() -> None:
    fields = (2, 2, 32, 4, 1, 0, 96, 9, 1, 0, 0, _AT, _ARGUMENTS, 0, 0)
    found = Dispatch.of(PACKET.pack(*fields))
    assert found.workgroup == (32, 4, 1) and found.grid == (96, 9, 1) and found.workgroups == (3, 3, 1)


def test_a_wrong_offset_of_the_kernel_arguments_is_a_fault(memory: ProcessMemory) -> None:
    with pytest.raises(MachineFault, match="outside of every buffer"):
        run(memory, packet(kernarg=_ARGUMENTS + 8))


def test_a_kernel_for_waves_of_32_lanes_is_a_fault(memory: ProcessMemory) -> None:
    memory._at(_AT).bytes.raw[:64] = np.frombuffer(descriptor(_KERNARG | 1 << 10), np.uint8)  # type: ignore[union-attr]
    with pytest.raises(MachineFault, match="waves of 32 lanes"):
        run(memory, packet())


def test_more_lds_than_a_compute_unit_has_is_a_fault(memory: ProcessMemory) -> None:
    with pytest.raises(MachineFault, match="LDS overflow"):
        run(memory, packet(lds=65 << 10))


def test_memory_that_was_freed_is_a_fault(memory: ProcessMemory) -> None:
    memory.unmap(7)
    with pytest.raises(MachineFault, match="no buffer"):
        run(memory, packet())


def test_two_buffers_at_one_address_are_an_error(memory: ProcessMemory) -> None:
    with pytest.raises(ValueError, match="overlaps"):
        memory.lend(8, _AT + 4096, 4096, 0)


def test_memory_that_the_process_lends_is_copied_and_written_back() -> None:
    held = np.zeros(1024, np.uint32)
    held[5] = 7
    made = ProcessMemory(os.getpid())
    made.lend(3, _DATA, held.nbytes, held.ctypes.data)
    region = made._at(_DATA)
    assert region is not None and region.bytes.raw.view(np.uint32)[5] == 7
    region.bytes.raw.view(np.uint32)[6] = 9
    held[900] = 4  # as the process may, while the device runs
    made.give_back()
    assert (held[5], held[6], held[900]) == (7, 9, 4)


def test_registers_of_a_descriptor_count_in_eights_and_fours() -> None:
    raw = bytearray(descriptor())
    struct.pack_into("<II", raw, 44, 5, 7)
    found = Descriptor.of(bytes(raw))
    assert (found.vectors, found.accumulators) == (64, 24)


def test_code_reaches_to_the_end_of_the_last_block() -> None:
    lines = ("s_cbranch_scc0 2", "s_nop 0", "s_endpgm", "s_nop 0", "s_endpgm", "s_nop 0")
    code = {4 * n: instruction(line, 4 * n) for n, line in enumerate(lines)}
    assert reach(code, 4 * len(lines)) == 20
    assert reach({n: ins for n, ins in code.items() if n < 16}, 16) is None


def test_bytes_of_code_become_an_object_file() -> None:
    text = bytes(range(64))
    found = CodeObject(code_object(text, "gfx942"))
    assert [section.size for section in found._sections][1] == 64 and text in found.data


def test_messages_of_driver_and_device_have_one_layout() -> None:
    text = (Path(__file__).with_name("driver") / "driver.h").read_text(encoding="utf-8")
    kinds = dict(re.findall(r"REQUEST_(\w+) = (\d)", text))
    assert kinds == {"ADD": str(ADD), "REMOVE": str(REMOVE), "DISPATCH": str(DISPATCH)}
    request = re.search(r"struct request \{(.*?)\};", text, re.DOTALL)
    assert request and len(re.findall(r"uint64_t \w+;", request[1])) == 5 and REQUEST.size == 2 * 4 + 5 * 8 + 64
    assert "char text[240];" in text and REPLY.size == 4 + 4 + 8 + 240 and len(reply(1, "x" * 500, 5)) == REPLY.size

"""Memory of the executor: bounds, buffers' range checks, LDS, scratch, atomics, and exchanges between lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from arena.platforms.cpu.amd_isa.faults import MachineFault
from arena.platforms.cpu.amd_isa.memory import DeviceMemory
from arena.platforms.cpu.amd_isa.vector_memory import swizzle_lanes
from arena.platforms.cpu.amd_isa.waves import PRIVATE_APERTURE, SHARED_APERTURE, Waves
from tests.platforms.amd_isa import ALL, LDS_BYTES, bits16, bits32, get64, put64, run, set_exec, step, waves

Array = Any


@pytest.fixture
def numbers() -> Array:
    return np.arange(256, dtype=np.uint32)


def device(array: Array) -> tuple[Waves, int]:
    """A wave whose memory is one array, with its address in s[0:1] and, by lane, in v[0:1]."""
    memory = DeviceMemory()
    address = memory.add_array(array, "numbers")
    group = waves(1, memory)
    group.s64[:, 0] = address
    put64(group, 0, np.uint64(address) + np.arange(64, dtype=np.uint64) * np.uint64(4))
    return group, address


def test_global_loads_and_stores_of_every_width(numbers: Array) -> None:
    group, _ = device(numbers)
    loads: tuple[tuple[str, Callable[[int], int]], ...] = (
        ("global_load_dword v4, v[0:1], off offset:8", lambda n: n + 2),
        ("global_load_ubyte v4, v[0:1], off", lambda n: n),
        ("global_load_ushort v4, v[0:1], off offset:-4", lambda n: n - 1),
        ("global_load_sbyte v4, v[0:1], off offset:512", lambda n: (128 + n) | 0xFFFFFF00),
    )
    for text, wanted in loads:
        set_exec(group, ALL ^ 1)
        step(group, text)
        assert [int(x) for x in group.v[4, 0, 1:]] == [wanted(n) for n in range(1, 64)], text
    step(group, "global_load_dwordx4 v[4:7], v[0:1], off")
    assert group.v[4:8, 0, 9].tolist() == [9, 10, 11, 12]
    group.v[8] = 0xABCD1234
    step(group, "global_store_short_d16_hi v[0:1], v8, off")
    step(group, "global_store_byte v[0:1], v8, off offset:3")
    assert hex(numbers[5]) == hex(0x3400ABCD)
    assert numbers[0] == 0  # lane 0 was off


def test_a_wait_that_is_left_out_cannot_be_seen(numbers: Array) -> None:
    """Memory answers at once, as docs/develop/emulation.md says: what a GPU may run wrongly is right here."""
    program = """
        global_load_dword v4, v[0:1], off
        s_waitcnt vmcnt(0)
        v_add_u32 v5, 1, v4
        s_endpgm
    """
    for text in (program, program.replace("s_waitcnt vmcnt(0)", "s_nop 0")):
        group, _ = device(numbers)
        run(group, text)
        assert group.v[5, 0].tolist() == list(range(1, 65)), text


def test_a_scalar_base_takes_a_32_bit_offset(numbers: Array) -> None:
    group, _ = device(numbers)
    group.v[2, 0] = np.arange(64) * 8
    step(group, "global_load_dwordx2 v[4:5], v2, s[0:1] offset:4")
    assert group.v[4:6, 0, 3].tolist() == [7, 8]


def test_half_registers_are_loaded_alone(numbers: Array) -> None:
    group, _ = device(numbers)
    group.v[4] = 0x11112222
    step(group, "global_load_short_d16_hi v4, v[0:1], off")
    assert hex(int(group.v[4, 0, 7])) == hex(0x00072222)
    step(group, "global_load_ubyte_d16 v4, v[0:1], off")
    assert hex(int(group.v[4, 0, 7])) == hex(0x00070007)


@pytest.mark.parametrize("offset", [-4, 1024 - 63 * 4])
def test_one_lane_out_of_bounds_is_a_fault(numbers: Array, offset: int) -> None:
    group, _ = device(numbers)
    with pytest.raises(MachineFault, match="outside of every buffer"):
        step(group, f"global_load_dword v4, v[0:1], off offset:{offset}")
    with pytest.raises(MachineFault, match="outside of every buffer"):
        step(group, f"global_store_dword v[0:1], v4, off offset:{offset}")
    set_exec(group, 0x7FFFFFFFFFFFFFFE)
    step(group, f"global_load_dword v4, v[0:1], off offset:{offset}")  # the lane that would fault is off


def test_lanes_may_be_in_different_buffers() -> None:
    memory = DeviceMemory()
    first, second = np.arange(64, dtype=np.uint32), np.arange(64, dtype=np.uint32) + 500
    low, high = sorted((memory.add_array(first, "first"), memory.add_array(second, "second")))
    del low, high
    group = waves(1, memory)
    lanes = np.arange(64, dtype=np.uint64)
    bases = np.where(lanes % 2 == 0, first.ctypes.data, second.ctypes.data).astype(np.uint64)
    put64(group, 0, bases + lanes * np.uint64(4))
    step(group, "global_load_dword v4, v[0:1], off")
    assert [int(x) for x in group.v[4, 0]] == [n if n % 2 == 0 else 500 + n for n in range(64)]
    group.v[5] = 1
    step(group, "global_atomic_add v4, v[0:1], v5, off sc0")
    assert (first[2], second[3]) == (3, 504)


def test_buffers_leave_out_lanes_beyond_their_range(numbers: Array) -> None:
    group, address = device(numbers)
    group.s[0, 4:8] = [address & 0xFFFFFFFF, address >> 32, 40, 0x27000]
    group.v[2, 0] = np.arange(64) * 4
    group.v[3] = 77
    step(group, "buffer_load_dword v3, v2, s[4:7], 0 offen offset:4")
    assert group.v[3, 0].tolist() == [n + 1 if n < 9 else 0 for n in range(64)]
    group.v[3] = 77
    step(group, "buffer_store_dword v3, v2, s[4:7], 0 offen")
    assert numbers[:12].tolist() == [77] * 10 + [10, 11]
    group.s[0, 6] = 0xFFFFFFFE  # a range that promises more than there is does not help
    with pytest.raises(MachineFault, match="outside of every buffer"):
        step(group, "buffer_load_dword v3, v2, s[4:7], 0 offen offset:1000")


def test_a_buffer_descriptor_of_word_7ffffffc_masks_lanes_with_a_large_offset(numbers: Array) -> None:
    """Triton switches lanes off by the offset 0x80000000."""
    group, address = device(numbers)
    group.s[0, 4:8] = [address & 0xFFFFFFFF, address >> 32, 0x7FFFFFFC, 0x27000]
    group.v[2, 0] = [n * 4 if n % 2 else 0x80000000 for n in range(64)]
    step(group, "buffer_load_dword v3, v2, s[4:7], 0 offen")
    assert group.v[3, 0].tolist() == [n if n % 2 else 0 for n in range(64)]


def test_lds_of_every_width() -> None:
    group = waves()
    group.v[0, 0] = np.arange(64) * 16
    for register in range(4):
        group.v[4 + register, 0] = np.arange(64) * 10 + register
    step(group, "ds_write_b128 v0, v[4:7]")
    step(group, "ds_read_b64 v[8:9], v0 offset:8")
    assert group.v[8:10, 0, 5].tolist() == [52, 53]
    step(group, "ds_read2_b32 v[8:9], v0 offset1:2")
    assert group.v[8:10, 0, 5].tolist() == [50, 52]
    step(group, "ds_read_u16 v8, v0 offset:2")
    assert not group.v[8].any()
    group.v[1, 0] = np.arange(64) * 4
    step(group, "ds_write2st64_b32 v1, v4, v5 offset0:1 offset1:2")
    step(group, "ds_read_b32 v8, v1 offset:512")
    assert group.v[8, 0].tolist() == [n * 10 + 1 for n in range(64)]


def test_a_pair_of_reads_may_overwrite_its_address() -> None:
    group = waves()
    group.machine.lds.raw.view(np.uint32)[:] = np.arange(LDS_BYTES // 4) + 1000
    group.v[2, 0] = np.arange(64) * 4
    step(group, "ds_read2_b32 v[2:3], v2 offset0:1 offset1:9")
    assert group.v[2:4, 0, 3].tolist() == [1004, 1012]


@pytest.mark.parametrize(("size", "text"), [(2, "ds_read_b64_tr_b16"), (1, "ds_read_b64_tr_b8")])
def test_transposing_reads_give_each_lane_a_column(size: int, text: str) -> None:
    group, items = waves(), 8 // size
    dtype: Any = np.uint16 if size == 2 else np.uint8
    tiles = np.arange(4 * items * 16).reshape(4, items, 16).astype(dtype)  # one tile for 16 lanes
    group.machine.lds.raw[: tiles.nbytes] = tiles.view(np.uint8).ravel()
    group.v[0, 0] = np.arange(64) * 8
    step(group, f"{text} v[2:3], v0", "gfx950")
    found = np.ascontiguousarray(group.v[2:4, 0].T).view(dtype)
    for lane in range(64):
        assert found[lane].tolist() == tiles[lane // 16, :, lane % 16].tolist()


def test_lds_overflow_is_a_fault() -> None:
    group = waves()
    group.v[0, 0] = np.arange(64) * 16
    with pytest.raises(MachineFault, match="LDS overflow"):
        step(group, "ds_read_b32 v4, v0 offset:13")
    step(group, "ds_read_b32 v4, v0 offset:12")


def test_flat_addresses_reach_lds_scratch_and_memory(numbers: Array) -> None:
    group, address = device(numbers)
    group.machine.lds.raw.view(np.uint32)[:] = 7
    places = [(SHARED_APERTURE << 32) + 4, (PRIVATE_APERTURE << 32) + 8, address + 12]
    put64(group, 2, [places[n % 3] for n in range(64)])
    group.v[4] = 0
    step(group, "scratch_store_dword off, v4, off offset:8")
    step(group, "flat_load_dword v4, v[2:3]")
    assert group.v[4, 0, :3].tolist() == [7, 0, 3]
    group.v[5, 0] = np.arange(64)
    set_exec(group, 0b10)
    step(group, "flat_store_dword v[2:3], v5")
    set_exec(group, ALL)
    step(group, "scratch_load_dword v6, off, off offset:8")
    assert group.v[6, 0, :3].tolist() == [0, 1, 0]  # scratch is each lane's own
    with pytest.raises(MachineFault, match="scratch"):
        step(group, "scratch_load_dword v6, off, off offset:64")


ATOMICS: dict[str, Callable[[int, int], int]] = {
    "add": lambda old, new: old + new,
    "sub": lambda old, new: old - new,
    "smax": lambda old, new: max(old, new),
    "umin": min,
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
    "swap": lambda old, new: new,
    "inc": lambda old, new: 0 if old >= new else old + 1,
    "dec": lambda old, new: new if old == 0 or old > new else old - 1,
}


@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_take_turns(name: str) -> None:
    """All lanes meet at two addresses; each gets what was there before its turn."""
    data = np.array([5, 9], np.uint32)
    memory = DeviceMemory()
    address = memory.add_array(data, "data")
    group = waves(1, memory)
    put64(group, 0, [address + n % 2 * 4 for n in range(64)])
    operands = [(n * 37 + 3) % 200 for n in range(64)]
    group.v[2, 0] = operands
    step(group, f"global_atomic_{name} v3, v[0:1], v2, off sc0")
    held, before = [5, 9], []
    for lane, operand in enumerate(operands):
        before.append(held[lane % 2])
        held[lane % 2] = ATOMICS[name](held[lane % 2], operand) & 0xFFFFFFFF
    assert (group.v[3, 0].tolist(), data.tolist()) == (before, held)


def test_compare_and_swap_and_float_atomics(numbers: Array) -> None:
    group, _ = device(numbers)
    group.v[2], group.v[3, 0] = 99, np.where(np.arange(64) % 2, np.arange(64), 1000)
    step(group, "global_atomic_cmpswap v4, v[0:1], v[2:3], off sc0")
    assert numbers[:4].tolist() == [0, 99, 2, 99]
    assert group.v[4, 0, :4].tolist() == [0, 1, 2, 3]
    floats = np.zeros(4, np.float32)
    put64(group, 0, group.machine.memory.add_array(floats, "floats"))
    group.vf[2] = 0.5
    step(group, "global_atomic_add_f32 v[0:1], v2, off")
    group.v[2] = bits16(1.0) | bits16(2.0) << 16
    step(group, "global_atomic_pk_add_f16 v[0:1], v2, off offset:4")
    assert floats[0] == 32.0
    assert floats.view(np.float16)[2:4].tolist() == [64.0, 128.0]
    wide = np.zeros(1, np.uint64)
    put64(group, 0, group.machine.memory.add_array(wide, "wide"))
    put64(group, 2, 1 << 40)
    step(group, "global_atomic_add_x2 v[4:5], v[0:1], v[2:3], off sc0")
    assert int(wide[0]) == 64 << 40
    assert get64(group, 4) == [n << 40 for n in range(64)]


def test_lds_atomics() -> None:
    group = waves()
    group.v[1] = 3
    step(group, "ds_add_u32 v0, v1")
    step(group, "ds_add_rtn_u32 v2, v0, v1")
    assert group.v[2, 0].tolist() == [192 + 3 * n for n in range(64)]
    group.vf[1] = 1.5
    step(group, "ds_add_f32 v0, v1 offset:8")
    assert group.machine.lds.raw.view(np.float32)[2] == 96.0
    group.v[3], group.v[4] = bits32(96.0), 5
    step(group, "ds_cmpst_rtn_b32 v5, v0, v3, v4 offset:8")
    assert group.machine.lds.raw.view(np.uint32)[2] == 5


def test_bpermute_pulls_and_permute_pushes() -> None:
    group = waves()
    group.v[0, 0], group.v[1, 0] = (np.arange(64) * 4 + 4) % 256, np.arange(64) + 100
    step(group, "ds_bpermute_b32 v2, v0, v1")
    assert group.v[2, 0].tolist() == [100 + (n + 1) % 64 for n in range(64)]
    step(group, "ds_permute_b32 v2, v0, v1")
    assert group.v[2, 0].tolist() == [100 + (n - 1) % 64 for n in range(64)]
    set_exec(group, ALL ^ 2)
    step(group, "ds_bpermute_b32 v2, v0, v1")
    assert int(group.v[2, 0, 0]) == 0  # lane 1 is off


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("swizzle(QUAD_PERM,1,0,3,2)", lambda n: n ^ 1),
        ('swizzle(BITMASK_PERM,"0p1pi")', lambda n: n & 32 | n & 0b01010 | 0b00100 | ~n & 1),
        ("swizzle(SWAP,16)", lambda n: n ^ 16),
        ("swizzle(REVERSE,8)", lambda n: n // 8 * 8 + 7 - n % 8),
        ("swizzle(BROADCAST,4,2)", lambda n: n // 4 * 4 + 2),
    ],
)
def test_swizzles(text: str, source: Callable[[int], int]) -> None:
    assert swizzle_lanes(text).tolist() == [source(n) for n in range(64)]
    group = waves()
    group.v[0, 0] = np.arange(64)
    step(group, f"ds_swizzle_b32 v1, v0 offset:{text}")
    assert group.v[1, 0].tolist() == [source(n) for n in range(64)]


def test_loads_straight_into_lds(numbers: Array) -> None:
    group, _ = device(numbers)
    group.s[0, 124] = 256
    step(group, "global_load_lds_dword v[0:1], off")
    assert group.machine.lds.raw.view(np.uint32)[64:128].tolist() == list(range(64))


def test_regions_do_not_overlap_and_can_be_removed() -> None:
    memory, data = DeviceMemory(), np.zeros(64, np.uint8)
    address = memory.add_array(data, "data")
    with pytest.raises(ValueError, match="overlaps"):
        memory.add(address + 32, 64, "more")
    assert memory.holds(address + 63) and not memory.holds(address + 64)
    assert memory.remove(address) and not memory.remove(address)
    assert not memory.holds(address)

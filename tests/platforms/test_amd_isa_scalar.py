"""Scalar instructions, control flow and barriers of the executor."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from arena.platforms.cpu.amd_isa.faults import MachineFault, NotModelled
from arena.platforms.cpu.amd_isa.memory import DeviceMemory
from tests.platforms.amd_isa import ALL, run, set_exec, step, waves

M = 0xFFFFFFFF


def signed(x: int, bits: int = 32) -> int:
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


def overflows(x: int) -> bool:
    return not -(1 << 31) <= x < 1 << 31


SCALAR: dict[str, tuple[Callable[[int, int], int], Callable[[int, int], bool] | None]] = {
    "s_add_u32 s2, s0, s1": (lambda a, b: a + b, lambda a, b: a + b > M),
    "s_sub_u32 s2, s0, s1": (lambda a, b: a - b, lambda a, b: b > a),
    "s_add_i32 s2, s0, s1": (lambda a, b: a + b, lambda a, b: overflows(signed(a) + signed(b))),
    "s_sub_i32 s2, s0, s1": (lambda a, b: a - b, lambda a, b: overflows(signed(a) - signed(b))),
    "s_mul_i32 s2, s0, s1": (lambda a, b: a * b, None),
    "s_mul_hi_u32 s2, s0, s1": (lambda a, b: a * b >> 32, None),
    "s_mul_hi_i32 s2, s0, s1": (lambda a, b: signed(a) * signed(b) >> 32, None),
    "s_min_i32 s2, s0, s1": (lambda a, b: min(signed(a), signed(b)), lambda a, b: signed(a) < signed(b)),
    "s_max_u32 s2, s0, s1": (lambda a, b: max(a, b), lambda a, b: a > b),
    "s_and_b32 s2, s0, s1": (lambda a, b: a & b, lambda a, b: a & b != 0),
    "s_andn2_b32 s2, s0, s1": (lambda a, b: a & ~b, lambda a, b: a & ~b & M != 0),
    "s_xor_b32 s2, s0, s1": (lambda a, b: a ^ b, lambda a, b: a != b),
    "s_lshl_b32 s2, s0, s1": (lambda a, b: a << (b & 31), lambda a, b: a << (b & 31) & M != 0),
    "s_lshr_b32 s2, s0, s1": (lambda a, b: a >> (b & 31), lambda a, b: a >> (b & 31) != 0),
    "s_ashr_i32 s2, s0, s1": (lambda a, b: signed(a) >> (b & 31), lambda a, b: signed(a) >> (b & 31) != 0),
    "s_lshl2_add_u32 s2, s0, s1": (lambda a, b: (a << 2) + b, lambda a, b: (a << 2) + b > M),
    "s_bfe_u32 s2, s0, 0x80004": (lambda a, b: a >> 4 & 255, lambda a, b: a >> 4 & 255 != 0),
    "s_bfe_i32 s2, s0, 0x10001f": (lambda a, b: -(a >> 31), lambda a, b: a >> 31 != 0),
    "s_not_b32 s2, s0": (lambda a, b: ~a, lambda a, b: a != M),
    "s_abs_i32 s2, s0": (lambda a, b: abs(signed(a)), lambda a, b: a != 0),
    "s_brev_b32 s2, s0": (lambda a, b: int(f"{a:032b}"[::-1], 2), None),
    "s_bcnt1_i32_b32 s2, s0": (lambda a, b: a.bit_count(), lambda a, b: a != 0),
    "s_ff1_i32_b32 s2, s0": (lambda a, b: (a & -a).bit_length() - 1 if a else M, None),
    "s_flbit_i32_b32 s2, s0": (lambda a, b: 32 - a.bit_length() if a else M, None),
    "s_sext_i32_i8 s2, s0": (lambda a, b: signed(a & 255, 8), None),
    "s_pack_ll_b32_b16 s2, s0, s1": (lambda a, b: a & 0xFFFF | b << 16, None),
}
EDGES = [0, 1, 31, 0x7FFFFFFF, 0x80000000, M]


@pytest.mark.parametrize("text", SCALAR)
def test_scalar_instructions(text: str) -> None:
    function, flag = SCALAR[text]
    chance = random.Random(1)
    pairs = [(a, b) for a in EDGES for b in EDGES] + [
        (chance.getrandbits(32), chance.getrandbits(32)) for _ in range(64)
    ]
    group = waves(len(pairs))
    group.s[:, :2] = pairs
    step(group, text)
    assert [int(x) for x in group.s[:, 2]] == [function(a, b) & M for a, b in pairs]
    if flag is not None:
        assert [bool(x) for x in group.scc] == [flag(a, b) for a, b in pairs]


def test_64_bit_scalars_and_carries() -> None:
    group = waves()
    group.s[0, :4] = [M, 1, 2, 3]
    step(group, "s_add_u32 s4, s0, s2")
    step(group, "s_addc_u32 s5, s1, s3")
    assert int(group.s64[0, 2]) == (M | 1 << 32) + (2 | 3 << 32)
    step(group, "s_sub_u32 s4, s2, s0")
    step(group, "s_subb_u32 s5, s3, s1")
    assert int(group.s64[0, 2]) == (2 | 3 << 32) - (M | 1 << 32)
    for text, wanted in (
        ("s_lshl_b64 s[4:5], s[0:1], 4", (M | 1 << 32) << 4),
        ("s_ashr_i64 s[4:5], s[0:1], 8", (M | 1 << 32) >> 8),
        ("s_not_b64 s[4:5], s[0:1]", ~(M | 1 << 32) & ALL),
        ("s_bfe_u64 s[4:5], s[0:1], 0x100010", 0xFFFF),
        ("s_mov_b64 s[4:5], -1", ALL),
    ):
        step(group, text)
        assert int(group.s64[0, 2]) == wanted, text


def test_compares_selects_and_constants() -> None:
    group = waves(2)
    group.s[:, 0] = [5, M]
    step(group, "s_cmp_lt_i32 s0, 3")
    assert list(group.scc) == [False, True]
    step(group, "s_cselect_b32 s1, 7, s0")
    assert list(group.s[:, 1]) == [5, 7]
    step(group, "s_cmpk_gt_u32 s0, 0xfff0")
    assert list(group.scc) == [False, True]
    step(group, "s_movk_i32 s2, 0xfff0")
    step(group, "s_addk_i32 s2, 0x20")
    assert list(group.s[:, 2]) == [0x10, 0x10]
    step(group, "s_bitcmp1_b32 s0, 1")
    assert list(group.scc) == [False, True]
    step(group, "s_bitset0_b32 s0, 0")
    assert list(group.s[:, 0]) == [4, M - 1]


def test_saveexec_narrows_the_lanes() -> None:
    group = waves()
    group.s[0, :2] = [0xFF, 0]
    step(group, "s_and_saveexec_b64 s[2:3], s[0:1]")
    assert int(group.s64[0, 1]) == ALL
    step(group, "v_mov_b32_e32 v0, 1")
    assert int(group.v[0].sum()) == 8
    step(group, "s_andn2_b64 exec, exec, s[0:1]")
    assert bool(group.scc[0]) is False
    step(group, "s_mov_b64 exec, s[2:3]")
    step(group, "v_mov_b32_e32 v0, 1")
    assert int(group.v[0].sum()) == 64


def test_scalar_loads_are_bounded() -> None:
    memory, data = DeviceMemory(), np.arange(32, dtype=np.uint32)
    address = memory.add_array(data, "numbers")
    group = waves(2, memory)
    group.s64[:, 0] = [address, address + 16]
    step(group, "s_load_dwordx4 s[4:7], s[0:1], 0x8")
    assert group.s[:, 4:8].tolist() == [[2, 3, 4, 5], [6, 7, 8, 9]]
    with pytest.raises(MachineFault, match="outside of every buffer"):
        step(group, "s_load_dword s4, s[0:1], 0x1000")


def test_waves_part_at_branches_and_meet_again() -> None:
    """Each wave goes round a loop as often as its register says, then all store what they counted."""
    memory, out = DeviceMemory(), np.zeros(5 * 64, np.uint32)
    group = waves(5, memory)
    group.s[:, 0] = turns = [3, 1, 0, 4, 1]
    group.v[2] = (np.arange(5)[:, None] * 64 + np.arange(64)) * 4
    group.s64[:, 4] = memory.add_array(out, "out")
    run(
        group,
        """
        s_cmp_eq_u32 s0, 0
        s_cbranch_scc1 4
        v_add_u32_e32 v0, 1, v0
        s_sub_u32 s0, s0, 1
        s_cmp_lg_u32 s0, 0
        s_cbranch_scc1 65532
        global_store_dword v2, v0, s[8:9]
        s_endpgm
        """,
    )
    assert out.reshape(5, 64)[:, 7].tolist() == turns


def test_a_loop_of_lanes_ends_when_every_lane_has_left() -> None:
    memory, out = DeviceMemory(), np.zeros(64, np.uint32)
    group = waves(1, memory)
    group.v[0, 0] = np.arange(64)
    group.s64[0, 4] = memory.add_array(out, "out")
    run(
        group,
        """
        v_mov_b32_e32 v1, 0
        s_mov_b64 s[0:1], 0
        v_add_u32_e32 v1, 2, v1
        v_cmp_ge_u32_e32 vcc, v1, v0
        s_or_b64 s[0:1], vcc, s[0:1]
        s_andn2_b64 exec, exec, s[0:1]
        s_cbranch_execnz 65531
        s_mov_b64 exec, s[0:1]
        v_lshlrev_b32_e32 v2, 2, v0
        global_store_dword v2, v1, s[8:9]
        s_endpgm
        """,
    )
    assert out.tolist() == [max(2, n + n % 2) for n in range(64)]


def test_barriers_hold_waves_until_all_are_there() -> None:
    """Wave 1 takes a detour before it writes to LDS; wave 0 reads after the barrier."""
    memory, out = DeviceMemory(), np.zeros(64, np.uint32)
    group = waves(2, memory)
    group.v[0] = np.arange(64) * 4
    group.s[:, 0] = [0, 1]
    group.s64[:, 4] = memory.add_array(out, "out")
    run(
        group,
        """
        s_cmp_eq_u32 s0, 1
        s_cbranch_scc1 3
        s_barrier
        ds_read_b32 v1, v0
        s_branch 4
        v_mov_b32_e32 v1, 42
        ds_write_b32 v0, v1
        s_barrier
        s_endpgm
        global_store_dword v0, v1, s[8:9]
        s_endpgm
        """,
    )
    assert (out == 42).all()


def test_waves_that_wait_for_another_let_it_run() -> None:
    """Wave 0 spins, at a lower address, until wave 1 has set a flag in memory."""
    memory, flag = DeviceMemory(), np.zeros(16, np.uint32)
    group = waves(2, memory)
    group.s[:, 0] = [0, 1]
    group.s64[:, 4] = memory.add_array(flag, "flag")
    set_exec(group, 1)
    run(
        group,
        """
        s_cmp_eq_u32 s0, 1
        s_cbranch_scc1 5
        global_load_dword v1, v0, s[8:9]
        v_readfirstlane_b32 s1, v1
        s_cmp_eq_u32 s1, 0
        s_cbranch_scc1 65532
        s_endpgm
        v_mov_b32_e32 v2, 1
        global_store_dword v0, v2, s[8:9]
        s_endpgm
        """,
    )
    assert flag[0] == 1


def test_calls_return_to_where_they_came_from() -> None:
    group = waves()
    memory, out = group.machine.memory, np.zeros(64, np.uint32)
    group.s64[0, 4] = memory.add_array(out, "out")
    run(
        group,
        """
        s_getpc_b64 s[0:1]
        s_add_u32 s0, s0, 20
        s_swappc_b64 s[30:31], s[0:1]
        v_add_u32_e32 v1, 1, v1
        global_store_dword v0, v1, s[8:9]
        s_endpgm
        v_mov_b32_e32 v1, 6
        s_setpc_b64 s[30:31]
        """,
    )
    assert out[0] == 7


def test_traps_and_unknown_instructions_end_the_run() -> None:
    with pytest.raises(MachineFault, match="trap"):
        run(waves(), "s_trap 2")
    with pytest.raises(NotModelled, match="s_made_up"):
        run(waves(), "s_made_up s0\ns_endpgm")

"""Vector instructions that move between lanes or take parts of registers: DPP, SDWA, halves and swaps."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from arena.platforms.cpu.amd_isa.faults import NotModelled
from arena.platforms.cpu.amd_isa.waves import merge
from tests.platforms.amd_isa import (
    ALL,
    bits16,
    bits32,
    float32,
    run,
    set_exec,
    step,
    waves,
)


def test_lanes_that_are_off_keep_what_they_had() -> None:
    group = waves()
    group.v[1] = 9
    set_exec(group, 0b101)
    step(group, "v_mov_b32_e32 v1, 5")
    assert list(group.v[1, 0, :4]) == [5, 9, 5, 9]


@pytest.mark.parametrize(
    ("control", "source"),
    [
        ("quad_perm:[1,0,3,2]", lambda n: n ^ 1),
        ("row_shr:3", lambda n: n - 3 if n % 16 >= 3 else None),
        ("row_shl:1", lambda n: n + 1 if n % 16 < 15 else None),
        ("row_ror:4", lambda n: n // 16 * 16 + (n % 16 - 4) % 16),
        ("row_mirror", lambda n: n // 16 * 16 + 15 - n % 16),
        ("row_half_mirror", lambda n: n // 8 * 8 + 7 - n % 8),
        ("row_bcast:15", lambda n: n // 16 * 16 - 1 if n >= 16 else None),
        ("row_bcast:31", lambda n: 31 if n >= 32 else None),
        ("row_newbcast:5", lambda n: n // 16 * 16 + 5),
        ("wave_shr:1", lambda n: n - 1 if n else None),
    ],
)
def test_dpp_moves_between_lanes(control: str, source: Callable[[int], int | None]) -> None:
    for ending, missing in (("bound_ctrl:1", lambda n: 0), ("", lambda n: 1000 + n)):
        group = waves()
        group.v[0, 0], group.v[1, 0] = np.arange(64) + 100, np.arange(64) + 1000
        step(group, f"v_mov_b32_dpp v1, v0 {control} row_mask:0xf bank_mask:0xf {ending}")
        expected = [missing(n) if source(n) is None else 100 + (source(n) or 0) for n in range(64)]
        assert [int(x) for x in group.v[1, 0]] == expected


def test_dpp_in_place_reads_before_it_writes_and_masks_rows() -> None:
    group = waves()
    group.v[0, 0] = np.arange(64)
    step(group, "v_add_u32_dpp v0, v0, v0 row_shr:1 row_mask:0xa bank_mask:0xf bound_ctrl:1")
    expected = [n + (n - 1 if n % 16 else 0) if n // 16 in (1, 3) else n for n in range(64)]
    assert [int(x) for x in group.v[0, 0]] == expected


def test_dpp_takes_nothing_from_lanes_that_are_off() -> None:
    group = waves()
    group.v[0], group.v[1] = 7, 9
    set_exec(group, ALL ^ 1)
    step(group, "v_mov_b32_dpp v1, v0 row_shr:1 row_mask:0xf bank_mask:0xf")
    assert list(group.v[1, 0, :3]) == [9, 9, 7]


def test_sdwa_selects_and_places_parts() -> None:
    group = waves()
    group.v[0], group.v[1], group.v[2] = 0x8899AABB, 0x11223344, 0xDDDDDDDD
    step(group, "v_add_u32_sdwa v2, v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:WORD_1")
    assert int(group.v[2, 0, 0]) == 0xDDDD00DD | (0xBB + 0x1122 & 0xFF) << 8
    step(group, "v_or_b32_sdwa v2, v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:BYTE_0")
    assert int(group.v[2, 0, 0]) == (0x88 | 0x44) << 16
    step(
        group, "v_ashrrev_i32_sdwa v2, v3, sext(v0) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:BYTE_3"
    )
    assert int(group.v[2, 0, 0]) == 0xFFFFFF88


def test_op_sel_chooses_halves() -> None:
    group = waves()
    group.v[0] = bits16(1.0) | bits16(2.0) << 16
    group.v[1] = bits16(10.0) | bits16(20.0) << 16
    step(group, "v_pk_add_f16 v2, v0, v1 op_sel:[1,0] op_sel_hi:[0,1]")
    assert int(group.v[2, 0, 0]) == bits16(12.0) | bits16(21.0) << 16
    step(group, "v_pack_b32_f16 v2, v0, v1 op_sel:[1,0,0]")
    assert int(group.v[2, 0, 0]) == bits16(2.0) | bits16(10.0) << 16
    step(group, "v_fma_mix_f32 v2, v0, v1, 0.5 op_sel:[1,0,0] op_sel_hi:[1,1,0]")
    assert float32(int(group.v[2, 0, 0])) == 20.5
    step(group, "v_fma_mixhi_f16 v2, v0, v1, 0 op_sel_hi:[1,1,0]")
    assert int(group.v[2, 0, 0]) == bits32(20.5) & 0xFFFF | bits16(10.0) << 16


def test_packed_float32_reads_either_register_of_a_pair() -> None:
    group = waves()
    group.vf[0], group.vf[1], group.vf[2], group.vf[3] = 1.0, 2.0, 10.0, 20.0
    step(group, "v_pk_add_f32 v[4:5], v[0:1], v[2:3] op_sel:[0,1] op_sel_hi:[1,0] neg_lo:[0,1] neg_hi:[1,0]")
    assert (float(group.vf[4, 0, 0]), float(group.vf[5, 0, 0])) == (1.0 - 20.0, -2.0 + 10.0)
    step(group, "v_pk_mov_b32 v[0:1], v[2:3], v[0:1] op_sel:[1,0]")
    assert (float(group.vf[0, 0, 0]), float(group.vf[1, 0, 0])) == (20.0, 1.0)


@pytest.mark.parametrize("rows", [16, 32])
def test_permlane_swaps_odd_rows_with_even_ones(rows: int) -> None:
    group = waves()
    group.v[0, 0], group.v[1, 0] = np.arange(64), np.arange(64) + 100
    step(group, f"v_permlane{rows}_swap_b32_e32 v0, v1", "gfx950")
    odd = [n // rows % 2 for n in range(64)]
    assert group.v[0, 0].tolist() == [100 + n - rows if odd[n] else n for n in range(64)]
    assert group.v[1, 0].tolist() == [100 + n if odd[n] else n + rows for n in range(64)]


def test_8_bit_floats_go_to_the_half_that_is_named() -> None:
    group = waves()
    group.vf[0], group.vf[1], group.v[2] = 1.0, -2.0, 0x11111111
    step(group, "v_cvt_pk_fp8_f32 v2, v0, v1 op_sel:[0,0,1]", "gfx942")
    assert hex(int(group.v[2, 0, 0])) == hex(0xC8401111)  # FNUZ: 1.0 is 0x40, -2.0 is 0xc8
    step(group, "v_cvt_pk_fp8_f32 v2, v0, v1", "gfx950")
    assert hex(int(group.v[2, 0, 0])) == hex(0xC840C038)  # OCP: 1.0 is 0x38, -2.0 is 0xc0
    step(group, "v_cvt_scalef32_pk_bf16_fp8 v4, v2, 1.0", "gfx950")
    assert hex(int(group.v[4, 0, 0])) == hex(0xC0003F80)
    step(group, "v_cvt_pk_f32_fp8_sdwa v[4:5], v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1", "gfx942")
    assert group.vf[4:6, 0, 0].tolist() == [1.0, -2.0]


def test_a_dot_product_of_halves() -> None:
    group = waves()
    group.v[0], group.v[1] = bits16(1.5) | bits16(-2.0) << 16, bits16(4.0) | bits16(0.5) << 16
    group.vf[2] = 100.0
    step(group, "v_dot2c_f32_f16_e32 v2, v0, v1")
    assert group.vf[2, 0, 0] == 105.0


def test_lane_reads_and_counts() -> None:
    group = waves(2)
    group.v[0, 0], group.v[0, 1] = np.arange(64), np.arange(64) + 1000
    set_exec(group, ALL << 5 & ALL)
    step(group, "v_readfirstlane_b32 s4, v0")
    step(group, "v_readlane_b32 s5, v0, 63")
    assert [list(row) for row in group.s[:, 4:6].tolist()] == [[5, 63], [1005, 1063]]
    step(group, "v_writelane_b32 v0, s5, 2")
    assert (int(group.v[0, 0, 2]), int(group.v[0, 1, 2])) == (63, 1063)
    set_exec(group, ALL)
    step(group, "v_mbcnt_lo_u32_b32 v1, -1, 0")
    step(group, "v_mbcnt_hi_u32_b32 v1, -1, v1")
    assert [int(x) for x in group.v[1, 0]] == list(range(64))


@pytest.mark.parametrize(
    "text",
    [
        "v_made_up_b32 v0, v1",
        "v_add_f32_e64 v0, v1, v2 made_up:1",
        "v_dot2_f32_f16 v0, v1, v2, v3 op_sel:[1,0,0]",
        "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[12:15], v[0:3] cbsz:4 blgp:4",
        "v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15] cbsz:1",
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3",
        "buffer_load_dword v0, v1, s[0:3], 0 idxen",
    ],
)
def test_what_is_unknown_is_named(text: str) -> None:
    with pytest.raises(NotModelled, match=text.split()[0].split("_e64")[0]):
        step(waves(), text)


def test_the_mode_has_overflows_to_float16_saturate() -> None:
    group = waves()
    group.vf[0, 0, :3] = [1e6, -1e6, math.inf]
    run(group, "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\nv_cvt_f16_f32_e32 v1, v0\ns_endpgm")
    assert [int(x) for x in group.v[1, 0, :3]] == [bits16(65504.0), bits16(-65504.0), bits16(math.inf)]
    mode, half = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n", "op_sel:[0,0,0,1]"
    run(group, f"{mode}v_cvt_scalef32_pk_bf8_f32 v1, v0, v0, 1.0 {half}\ns_endpgm")
    run(group, f"{mode}v_cvt_pk_fp8_f32 v1, v0, v0\ns_endpgm")
    assert hex(int(group.v[1, 0, 0])) == hex(0x7F7F << 16 | 0x7F7F)  # gfx942: 57344 and 240


def test_groups_that_meet_keep_the_registers_of_each_wave() -> None:
    whole = waves(5)
    whole.slot, whole.workgroup = np.array([1, 2, 5, 7, 9]), np.array([0, 0, 1, 1, 2])
    whole.s[:, 3], whole.scc = [11, 12, 13, 14, 15], np.array([True, False, True, True, False])
    whole.v[:] = np.arange(whole.v.size).reshape(whole.v.shape)
    parts = [whole.take(np.array(chosen)) for chosen in ([4, 1], [3], [0, 2])]
    met = merge(parts)
    assert [met.slot.tolist(), met.workgroup.tolist()] == [whole.slot.tolist(), whole.workgroup.tolist()]
    assert (met.v == whole.v).all() and (met.s == whole.s).all() and (met.scc == whole.scc).all()
    assert met.v.flags.c_contiguous and met.s.flags.c_contiguous
    parts[0].v[:] = 0
    assert (met.v == whole.v).all() and whole.v[0, 4, 1] != 0  # copies, not views

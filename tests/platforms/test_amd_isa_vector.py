"""Vector instructions against the definitions of the CDNA3 ISA guide, written in Python's integers and floats."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.platforms.amd_isa import (
    ALL,
    bits16,
    bits32,
    bits64,
    get64,
    put64,
    set_exec,
    set_vcc,
    step,
    vcc,
    waves,
)

M = 0xFFFFFFFF
EDGES = [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678, 0x00FFFFFF, 0xFF800000]


def signed(x: int, bits: int = 32) -> int:
    return x - (1 << bits) if x >> (bits - 1) & 1 else x


def words(seed: int) -> list[int]:
    chance = random.Random(seed)
    return [EDGES[n % len(EDGES)] if chance.random() < 0.4 else chance.getrandbits(32) for n in range(64)]


INTEGERS: dict[str, Callable[[int, int, int], int]] = {
    "v_add_u32_e32 v3, v0, v1": lambda a, b, c: a + b,
    "v_sub_u32_e32 v3, v0, v1": lambda a, b, c: a - b,
    "v_subrev_u32_e32 v3, v0, v1": lambda a, b, c: b - a,
    "v_mul_lo_u32 v3, v0, v1": lambda a, b, c: a * b,
    "v_mul_hi_u32 v3, v0, v1": lambda a, b, c: a * b >> 32,
    "v_mul_hi_i32 v3, v0, v1": lambda a, b, c: signed(a) * signed(b) >> 32,
    "v_mul_u32_u24_e32 v3, v0, v1": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "v_mul_i32_i24_e32 v3, v0, v1": lambda a, b, c: signed(a & 0xFFFFFF, 24) * signed(b & 0xFFFFFF, 24),
    "v_mad_u32_u24 v3, v0, v1, v2": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "v_sub_u32_e64 v3, v0, v1 clamp": lambda a, b, c: max(a - b, 0),
    "v_add_u32_e64 v3, v0, v1 clamp": lambda a, b, c: min(a + b, M),
    "v_sub_i32 v3, v0, v1 clamp": lambda a, b, c: min(max(signed(a) - signed(b), -(1 << 31)), (1 << 31) - 1),
    "v_dot4_i32_i8 v3, v0, v1, v2": lambda a, b, c: (
        c + sum(signed(a >> n & 255, 8) * signed(b >> n & 255, 8) for n in (0, 8, 16, 24))
    ),
    "v_dot8_u32_u4 v3, v0, v1, v2": lambda a, b, c: c + sum((a >> n & 15) * (b >> n & 15) for n in range(0, 32, 4)),
    "v_pk_add_u16 v3, v0, -1": lambda a, b, c: (a - 1 & 0xFFFF) | ((a >> 16) - 1 & 0xFFFF) << 16,
    "v_pk_add_u16 v3, v0, 5": lambda a, b, c: (a + 5 & 0xFFFF) | a & 0xFFFF0000,
    "v_pk_add_u16 v3, v0, 5 op_sel_hi:[1,0]": lambda a, b, c: (a + 5 & 0xFFFF) | ((a >> 16) + 5 & 0xFFFF) << 16,
    "v_and_b32_e32 v3, v0, v1": lambda a, b, c: a & b,
    "v_or_b32_e32 v3, v0, v1": lambda a, b, c: a | b,
    "v_xor_b32_e32 v3, v0, v1": lambda a, b, c: a ^ b,
    "v_xnor_b32_e32 v3, v0, v1": lambda a, b, c: ~(a ^ b),
    "v_not_b32_e32 v3, v0": lambda a, b, c: ~a,
    "v_min_u32_e32 v3, v0, v1": lambda a, b, c: min(a, b),
    "v_max_u32_e32 v3, v0, v1": lambda a, b, c: max(a, b),
    "v_min_i32_e32 v3, v0, v1": lambda a, b, c: min(signed(a), signed(b)),
    "v_max_i32_e32 v3, v0, v1": lambda a, b, c: max(signed(a), signed(b)),
    "v_med3_i32 v3, v0, v1, v2": lambda a, b, c: sorted(map(signed, (a, b, c)))[1],
    "v_lshlrev_b32_e32 v3, v0, v1": lambda a, b, c: b << (a & 31),
    "v_lshrrev_b32_e32 v3, v0, v1": lambda a, b, c: b >> (a & 31),
    "v_ashrrev_i32_e32 v3, v0, v1": lambda a, b, c: signed(b) >> (a & 31),
    "v_lshl_add_u32 v3, v0, v1, v2": lambda a, b, c: (a << (b & 31)) + c,
    "v_add_lshl_u32 v3, v0, v1, v2": lambda a, b, c: (a + b & M) << (c & 31),
    "v_lshl_or_b32 v3, v0, v1, v2": lambda a, b, c: a << (b & 31) | c,
    "v_and_or_b32 v3, v0, v1, v2": lambda a, b, c: a & b | c,
    "v_or3_b32 v3, v0, v1, v2": lambda a, b, c: a | b | c,
    "v_add3_u32 v3, v0, v1, v2": lambda a, b, c: a + b + c,
    "v_xad_u32 v3, v0, v1, v2": lambda a, b, c: (a ^ b) + c,
    "v_bfe_u32 v3, v0, v1, v2": lambda a, b, c: a >> (b & 31) & (1 << (c & 31)) - 1,
    "v_bfi_b32 v3, v0, v1, v2": lambda a, b, c: a & b | ~a & c,
    "v_bfm_b32 v3, v0, v1": lambda a, b, c: (1 << (a & 31)) - 1 << (b & 31),
    "v_bcnt_u32_b32 v3, v0, v1": lambda a, b, c: a.bit_count() + b,
    "v_bfrev_b32_e32 v3, v0": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "v_ffbh_u32_e32 v3, v0": lambda a, b, c: 32 - a.bit_length() if a else M,
    "v_ffbl_b32_e32 v3, v0": lambda a, b, c: (a & -a).bit_length() - 1 if a else M,
    "v_alignbit_b32 v3, v0, v1, v2": lambda a, b, c: (a << 32 | b) >> (c & 31),
    "v_alignbyte_b32 v3, v0, v1, v2": lambda a, b, c: (a << 32 | b) >> 8 * (c & 3),
    "v_sad_u32 v3, v0, v1, v2": lambda a, b, c: abs(a - b) + c,
    "v_mov_b32_e32 v3, v0": lambda a, b, c: a,
    "v_accvgpr_write_b32 a3, v0": lambda a, b, c: a,
    "v_add_u16_e32 v3, v0, v1": lambda a, b, c: a + b & 0xFFFF,
    "v_mul_lo_u16_e32 v3, v0, v1": lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) & 0xFFFF,
    "v_lshlrev_b16_e32 v3, v0, v1": lambda a, b, c: (b & 0xFFFF) << (a & 15) & 0xFFFF,
    "v_pk_add_u16 v3, v0, v1": lambda a, b, c: (a + b & 0xFFFF) | ((a >> 16) + (b >> 16) & 0xFFFF) << 16,
}


@pytest.mark.parametrize("text", INTEGERS)
def test_integer_instructions(text: str) -> None:
    group = waves()
    for register in range(3):
        group.v[register, 0] = words(register)
    step(group, text)
    to = 64 + 3 if " a3" in text else 3
    expected = [INTEGERS[text](*each) & M for each in zip(words(0), words(1), words(2), strict=True)]
    assert [int(x) for x in group.v[to, 0]] == expected


def test_bfe_i32_extends_the_sign_of_the_field() -> None:
    group = waves()
    group.v[0, 0, :3] = [0x00000F00, 0x00000700, 0xFFFFFFFF]
    step(group, "v_bfe_i32 v3, v0, 8, 4")
    assert [signed(int(x)) for x in group.v[3, 0, :3]] == [-1, 7, -1]
    step(group, "v_bfe_i32 v3, v0, 8, 0")
    assert not group.v[3].any()


def test_perm_chooses_bytes_of_both_sources() -> None:
    group = waves()
    group.v[0], group.v[1], group.v[2] = 0x77665544, 0x33221180, 0x0C080007
    step(group, "v_perm_b32 v3, v0, v1, v2")
    # 7: highest byte of the first source; 0: lowest of the second; 8: sign of bits 15 of the second; 12: zero.
    assert int(group.v[3, 0, 0]) == 0x00008077


FLOATS = [0.0, -0.0, 1.0, -1.5, 3.25e7, -2.5e-7, math.inf, -math.inf, math.nan, 0.5, 123.456, -65504.0]


def f32(x: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(x))


def max_num(a: float, b: float) -> float:
    return b if math.isnan(a) else a if math.isnan(b) else max(a, b)


FLOAT: dict[str, Callable[[float, float, float], float]] = {
    "v_add_f32_e32 v3, v0, v1": lambda a, b, c: f32(a + b),
    "v_sub_f32_e32 v3, v0, v1": lambda a, b, c: f32(a - b),
    "v_subrev_f32_e32 v3, v0, v1": lambda a, b, c: f32(b - a),
    "v_mul_f32_e32 v3, v0, v1": lambda a, b, c: f32(a * b),
    "v_fma_f32 v3, v0, v1, v2": lambda a, b, c: f32(a * b + c),
    "v_fma_f32 v3, -v0, |v1|, v2": lambda a, b, c: f32(-a * abs(b) + c),
    "v_fmac_f32_e32 v3, v0, v1": lambda a, b, c: f32(a * b + 7.0),
    "v_fmamk_f32 v3, v0, 0x40400000, v1": lambda a, b, c: f32(a * 3.0 + b),
    "v_fmaak_f32 v3, v0, v1, 0x40400000": lambda a, b, c: f32(a * b + 3.0),
    "v_max_f32_e32 v3, v0, v1": lambda a, b, c: max_num(a, b),
    "v_min_f32_e32 v3, v0, v1": lambda a, b, c: -max_num(-a, -b),
    "v_max3_f32 v3, v0, v1, v2": lambda a, b, c: max_num(max_num(a, b), c),
    "v_mul_f32_e64 v3, v0, v1 mul:2": lambda a, b, c: f32(f32(a * b) * 2.0),
    "v_add_f32_e64 v3, v0, v1 clamp": lambda a, b, c: 0.0 if math.isnan(a + b) else min(max(f32(a + b), 0.0), 1.0),
    "v_mul_f32_e32 v3, 0.5, v1": lambda a, b, c: f32(0.5 * b),
    "v_mov_b32_e32 v3, 1.0": lambda a, b, c: 1.0,
    "v_trunc_f32_e32 v3, v0": lambda a, b, c: float(math.trunc(a)) if math.isfinite(a) else a,
    "v_floor_f32_e32 v3, v0": lambda a, b, c: float(math.floor(a)) if math.isfinite(a) else a,
    "v_ceil_f32_e32 v3, v0": lambda a, b, c: float(math.ceil(a)) if math.isfinite(a) else a,
    "v_rndne_f32_e32 v3, v0": lambda a, b, c: float(round(a)) if math.isfinite(a) else a,
    "v_ldexp_f32 v3, v0, 3": lambda a, b, c: f32(a * 8.0),
    "v_med3_f32 v3, v0, 0, 1.0": lambda a, b, c: 0.0 if math.isnan(a) else min(max(a, 0.0), 1.0),
}


@pytest.mark.parametrize("text", FLOAT)
def test_float32_instructions(text: str) -> None:
    pairs = [(a, b, c) for a in FLOATS for b in FLOATS[2:7] for c in (1.0,)][:64]
    group = waves()
    for register in range(3):
        group.vf[register, 0, : len(pairs)] = [pair[register] for pair in pairs]
    group.vf[3] = 7.0
    step(group, text)
    for lane, pair in enumerate(pairs):
        expected = FLOAT[text](*(f32(x) for x in pair))
        found = float(group.vf[3, 0, lane])
        assert found == expected or (math.isnan(found) and math.isnan(expected)), (pair, found, expected)


@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("v_rcp_f32_e32 v1, v0", lambda x: 1 / x),
        ("v_rsq_f32_e32 v1, v0", lambda x: 1 / math.sqrt(x)),
        ("v_sqrt_f32_e32 v1, v0", math.sqrt),
        ("v_exp_f32_e32 v1, v0", lambda x: 2.0**x),
        ("v_log_f32_e32 v1, v0", math.log2),
        ("v_sin_f32_e32 v1, v0", lambda x: math.sin(2 * math.pi * x)),
        ("v_cos_f32_e32 v1, v0", lambda x: math.cos(2 * math.pi * x)),
        ("v_fract_f32_e32 v1, v0", lambda x: x - math.floor(x)),
        ("v_frexp_mant_f32_e32 v1, v0", lambda x: math.frexp(x)[0]),
    ],
)
def test_transcendentals_are_within_a_unit(text: str, function: Callable[[float], float]) -> None:
    values = [f32(0.07 * n + 0.03) for n in range(64)]
    group = waves()
    group.vf[0, 0] = values
    step(group, text)
    wanted = np.array([function(x) for x in values])
    assert np.allclose(group.vf[1, 0], wanted, rtol=1.2e-7, atol=1e-7)


def divide(group: Any) -> None:
    """The sequence that LLVM emits for a division of float32: v0 / v1 to v2."""
    for text in (
        "v_div_scale_f32 v3, s[0:1], v1, v1, v0",
        "v_div_scale_f32 v4, vcc, v0, v1, v0",
        "v_rcp_f32_e32 v5, v3",
        "v_fma_f32 v6, -v3, v5, 1.0",
        "v_fmac_f32_e32 v5, v6, v5",
        "v_mul_f32_e32 v6, v4, v5",
        "v_fma_f32 v7, -v3, v6, v4",
        "v_fmac_f32_e32 v6, v7, v5",
        "v_fma_f32 v3, -v3, v6, v4",
        "v_div_fmas_f32 v3, v3, v5, v6",
        "v_div_fixup_f32 v2, v3, v1, v0",
    ):
        step(group, text)


def test_the_division_sequence_divides() -> None:
    parts = [0.0, -0.0, 1.0, -3.0, 1e38, 3e-39, 1e-30, math.inf, -math.inf, math.nan, 7.0, 2.0**-126, 3.0e38, 1e-45]
    pairs = [(a, b) for a in parts for b in parts]
    for first in range(0, len(pairs), 64):
        some = pairs[first : first + 64]
        group = waves()
        group.vf[0, 0, : len(some)] = [a for a, _ in some]
        group.vf[1, 0, : len(some)] = [b for _, b in some]
        with np.errstate(all="ignore"):
            divide(group)
            wanted = group.vf[0, 0] / group.vf[1, 0]
        for lane, pair in enumerate(some):
            found, expected = float(group.vf[2, 0, lane]), float(wanted[lane])
            near = abs(found - expected) <= max(1.5e-45, abs(expected) * 1.2e-7) if math.isfinite(expected) else False
            assert near or found == expected or (math.isnan(found) and math.isnan(expected)), (pair, found, expected)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("v_cvt_i32_f32_e32 v1, v0", bits32(-1.9), M),
        ("v_cvt_i32_f32_e32 v1, v0", bits32(3e9), 0x7FFFFFFF),
        ("v_cvt_i32_f32_e32 v1, v0", bits32(math.nan), 0),
        ("v_cvt_u32_f32_e32 v1, v0", bits32(-3.0), 0),
        ("v_cvt_u32_f32_e32 v1, v0", bits32(5e9), M),
        ("v_cvt_f32_i32_e32 v1, v0", M, bits32(-1.0)),
        ("v_cvt_f32_u32_e32 v1, v0", M, bits32(4294967296.0)),
        ("v_cvt_f16_f32_e32 v1, v0", bits32(1.0 + 2**-11), bits16(1.0)),
        ("v_cvt_f16_f32_e32 v1, v0", bits32(1e6), bits16(math.inf)),
        ("v_cvt_f32_f16_e32 v1, v0", 0xABCD0000 | bits16(-2.5), bits32(-2.5)),
        ("v_cvt_f32_ubyte2_e32 v1, v0", 0x12345678, bits32(float(0x34))),
        ("v_cvt_pk_bf16_f32 v1, v0, 1.0", bits32(1.00390625), 0x3F803F80),
        ("v_cvt_pkrtz_f16_f32 v1, v0, 1.0", bits32(1.0 + 2**-10 - 2**-20), bits16(1.0) << 16 | bits16(1.0)),
        ("v_cvt_f32_f16_sdwa v1, v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1", 0xC1000000, bits32(-2.5)),
        ("v_frexp_exp_i32_f32_e32 v1, v0", bits32(8.0), 4),
        ("v_ffbh_i32_e32 v1, v0", 0xFFFF0000, 16),
    ],
)
def test_conversions(text: str, value: int, expected: int) -> None:
    group = waves()
    group.v[0] = value
    assert int(step(group, text).v[1, 0, 5]) == expected


def test_inline_constants_have_the_width_of_the_operation() -> None:
    group = waves()
    step(group, "v_add_f16_e32 v1, 1.0, v0")
    assert int(group.v[1, 0, 0]) == bits16(1.0)
    step(group, "v_add_f64 v[2:3], v[4:5], 1.0")
    assert get64(group, 2)[0] == bits64(1.0)
    step(group, "v_add_f64 v[2:3], v[4:5], 0x40080000")  # a literal is the high half
    assert get64(group, 2)[0] == bits64(3.0)
    step(group, "v_and_b32_e32 v1, -1, v0")
    step(group, "v_lshl_add_u64 v[2:3], v[4:5], 0, -1")
    assert get64(group, 2)[0] == ALL


def test_64_bit_operations() -> None:
    group = waves()
    put64(group, 0, [(n * 0x123456789ABCDEF) & ALL for n in range(64)])
    put64(group, 2, [(1 << n) for n in range(64)])
    for text, wanted in (
        ("v_lshl_add_u64 v[4:5], v[0:1], 3, v[2:3]", lambda a, b: (a << 3) + b),
        ("v_lshlrev_b64 v[4:5], 7, v[0:1]", lambda a, b: a << 7),
        ("v_lshrrev_b64 v[4:5], 7, v[0:1]", lambda a, b: a >> 7),
        ("v_ashrrev_i64 v[4:5], 7, v[0:1]", lambda a, b: signed(a, 64) >> 7),
        ("v_mov_b64_e32 v[4:5], v[0:1]", lambda a, b: a),
    ):
        a, b = get64(group, 0), get64(group, 2)
        step(group, text)
        assert get64(group, 4) == [wanted(x, y) & ALL for x, y in zip(a, b, strict=True)], text


def test_mad_u64_u32_and_carries() -> None:
    group = waves()
    group.v[0], group.v[1] = 0xFFFFFFFF, 0xFFFFFFFF
    put64(group, 2, ALL)
    step(group, "v_mad_u64_u32 v[4:5], s[0:1], v0, v1, v[2:3]")
    assert get64(group, 4)[0] == (0xFFFFFFFF**2 + ALL) & ALL
    assert int(group.s64[0, 0]) == ALL  # every lane carried
    step(group, "v_add_co_u32_e32 v6, vcc, 1, v0")
    assert vcc(group) == ALL
    step(group, "v_addc_co_u32_e32 v7, vcc, 4, v2, vcc")
    assert int(group.v[7, 0, 0]) == 4
    group.v[8] = 3
    step(group, "v_sub_co_u32_e32 v6, vcc, 2, v8")
    assert (int(group.v[6, 0, 0]), vcc(group)) == (0xFFFFFFFF, ALL)
    step(group, "v_subbrev_co_u32_e32 v6, vcc, 0, v8, vcc")
    assert (int(group.v[6, 0, 0]), vcc(group)) == (2, 0)


def test_compares_write_zeros_for_lanes_that_are_off() -> None:
    group = waves()
    group.v[0, 0] = np.arange(64)
    set_exec(group, 0xFF)
    set_vcc(group, ALL)
    step(group, "v_cmp_gt_u32_e32 vcc, 4, v0")
    assert vcc(group) == 0xF
    step(group, "v_cmp_ne_u32_e64 s[2:3], 4, v0")
    assert int(group.s64[0, 1]) == 0xEF


@pytest.mark.parametrize(
    ("name", "expected"),
    [("lt", 0b001), ("ge", 0b010), ("nlt", 0b110), ("u", 0b100), ("o", 0b011), ("neq", 0b111), ("lg", 0b011)],
)
def test_float_compares_with_nan(name: str, expected: int) -> None:
    group = waves()
    group.vf[0, 0, :3] = [1.0, 3.0, math.nan]
    set_exec(group, 7)
    step(group, f"v_cmp_{name}_f32_e64 s[2:3], v0, 2.0")
    assert int(group.s64[0, 1]) == expected


def test_classes_of_floats() -> None:
    values = [0x7F800001, 0x7FC00000, 0xFF800000, 0xBF800000, 0x80000001, 0x80000000, 0, 1, 0x3F800000, 0x7F800000]
    group = waves()
    group.v[0, 0, :10] = values
    for bit in range(10):
        group.v[1] = 1 << bit
        step(group, "v_cmp_class_f32_e32 vcc, v0, v1")
        assert vcc(group) & 0x3FF == 1 << bit


def test_cndmask_selects_by_the_mask_and_flips_signs() -> None:
    group = waves()
    group.vf[0], group.vf[1] = 1.0, 2.0
    set_vcc(group, 0b10)
    step(group, "v_cndmask_b32_e32 v2, v0, v1, vcc")
    assert list(group.vf[2, 0, :3]) == [1.0, 2.0, 1.0]
    step(group, "v_cndmask_b32_e64 v2, -v0, v1, vcc")
    assert list(group.vf[2, 0, :3]) == [-1.0, 2.0, -1.0]


def test_cndmask_moves_between_lanes_first() -> None:
    group = waves()
    group.v[0, 0], group.v[1] = np.arange(64), 1000
    set_vcc(group, 0b1000)
    step(group, "v_cndmask_b32_dpp v2, v0, v1, vcc row_shl:1 row_mask:0xf bank_mask:0xf")
    assert group.v[2, 0, :5].tolist() == [1, 2, 3, 1000, 5]


@pytest.mark.parametrize(
    ("table", "wanted"), [(0xC8, lambda a, b, c: (a | c) & b), (0x36, lambda a, b, c: (a | c) ^ b)]
)
def test_bitop3_is_a_truth_table(table: int, wanted: Callable[[int, int, int], int]) -> None:
    group = waves()
    for register in range(3):
        group.v[register, 0] = words(register)
    step(group, f"v_bitop3_b32 v3, v0, v1, v2 bitop3:{table:#x}", "gfx950")
    expected = [wanted(*each) & M for each in zip(words(0), words(1), words(2), strict=True)]
    assert [int(x) for x in group.v[3, 0]] == expected

"""Integer and bitwise vector operations.

ISA guide: "VOP2", "VOP1", "VOP3A & VOP3B Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.valu import Row

Array = Any
_U, _I = np.uint32, np.int32
_24 = _U(0xFFFFFF)


def _u64(x: Array) -> Array:
    return np.asarray(x).astype(np.uint64)


def _i64(x: Array) -> Array:
    return np.asarray(x).astype(np.int64)


def mul_hi_u32(a: Array, b: Array) -> Array:
    """Return the high half of the unsigned product."""
    return ((_u64(a) * _u64(b)) >> np.uint64(32)).astype(_U)


def mul_hi_i32(a: Array, b: Array) -> Array:
    """Return the high half of the signed product."""
    return ((_i64(a) * _i64(b)) >> np.int64(32)).astype(_I)


def _signed24(x: Array) -> Array:
    return (np.asarray(x) << _I(8)) >> _I(8)


def bfe_u32(x: Array, offset: Array, width: Array) -> Array:
    """Return `width` bits from `offset`, both modulo 32."""
    offset, width = _u64(offset) & np.uint64(31), _u64(width) & np.uint64(31)
    return ((_u64(x) >> offset) & ((np.uint64(1) << width) - np.uint64(1))).astype(_U)


def bfe_i32(x: Array, offset: Array, width: Array) -> Array:
    """Return `width` bits from `offset`, sign-extended."""
    offset, width = _i64(offset) & 31, _i64(width) & 31
    kept = (_i64(x) >> offset) & ((np.int64(1) << width) - 1)
    sign = np.where(width > 0, np.int64(1) << np.maximum(width - 1, 0), 0)
    return ((kept ^ sign) - sign).astype(_I)


def bit_reverse(x: Array) -> Array:
    """Return the 32 bits in opposite order."""
    x = np.asarray(x)
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0xFFFF)):
        x = ((x >> _U(shift)) & _U(mask)) | ((x & _U(mask)) << _U(shift))
    return x


def find_high_bit(x: Array) -> Array:
    """Return the number of zeros above the highest one, 0xffffffff for zero (V_FFBH_U32)."""
    exponent = np.frexp(np.asarray(x, np.float64))[1]
    return np.where(np.asarray(x) == 0, _U(0xFFFFFFFF), (32 - exponent).astype(_U))


def find_high_bit_signed(x: Array) -> Array:
    """Return how many bits below the sign bit equal it, counted from it; 0xffffffff for 0 and -1 (V_FFBH_I32)."""
    x = np.asarray(x)
    flipped = np.where(x < 0, ~x, x).view(_U)
    return np.where(flipped == 0, _U(0xFFFFFFFF), find_high_bit(flipped))


def find_low_bit(x: Array) -> Array:
    """Return the number of the lowest one, 0xffffffff for zero (V_FFBL_B32)."""
    x = np.asarray(x)
    return np.where(x == 0, _U(0xFFFFFFFF), np.bitwise_count((x & (~x + _U(1))) - _U(1)).astype(_U))


def perm(a: Array, b: Array, selector: Array) -> Array:
    """Choose each byte from {a, b}, eight bytes with b below (V_PERM_B32); 8 to 11 are signs, 12 zero, above ones."""
    both = (_u64(a) << np.uint64(32)) | _u64(b)
    result: Array = _U(0)
    for byte in range(4):
        chosen = (np.asarray(selector) >> _U(8 * byte)) & _U(0xFF)
        plain = (both >> (_u64(chosen & _U(7)) * np.uint64(8))) & np.uint64(0xFF)
        sign_at = _u64(16 * (chosen & _U(3)) + 15)
        sign = ((both >> sign_at) & np.uint64(1)) * np.uint64(0xFF)
        special = np.where(chosen == 12, np.uint64(0), np.uint64(0xFF))
        value = np.where(chosen < 8, plain, np.where(chosen < 12, sign, special))
        result = result | (value.astype(_U) << _U(8 * byte))
    return result


def align_bits(a: Array, b: Array, shift: Array) -> Array:
    """Return the low word of {a, b} shifted right by 0 to 31 bits."""
    return (((_u64(a) << np.uint64(32)) | _u64(b)) >> (_u64(shift) & np.uint64(31))).astype(_U)


def align_bytes(a: Array, b: Array, shift: Array) -> Array:
    """Return the low word of {a, b} shifted right by 0 to 3 bytes."""
    return align_bits(a, b, (np.asarray(shift) & _U(3)) * _U(8))


def absolute_difference(a: Array, b: Array, c: Array) -> Array:
    """Return |a - b| + c, unsigned (V_SAD_U32)."""
    return np.where(a > b, a - b, b - a) + c


def _shift_left(by: Array, x: Array) -> Array:
    return x << (by & _U(31))


def _med3(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def saturating(function: Callable[[Array, Array], Array], dtype: Any) -> Callable[[Array, Array], Array]:
    """Return the function on 64 bits, with its result limited to the range of `dtype`."""
    info = np.iinfo(dtype)
    return lambda a, b: np.clip(function(_i64(a), _i64(b)), info.min, info.max).astype(dtype)


def _sum(kind: str, dtype: Any, function: Callable[[Array, Array], Array]) -> Row:
    return Row(kind, f"{kind} {kind}", function, saturating=saturating(function, dtype))


def _reversed(a: Array, b: Array) -> Array:
    return b - a


def _dot(bits: int, signed: bool) -> Callable[[Array, Array, Array], Array]:
    """Sum of products of the 4 or 8 parts of a word, plus an addend, modulo 2^32."""
    sign = np.int64(1 << bits - 1) if signed else np.int64(0)

    def function(a: Array, b: Array, c: Array) -> Array:
        total = _i64(c)
        for shift in range(0, 32, bits):
            parts = [((_i64(x) >> shift) & ((1 << bits) - 1) ^ sign) - sign for x in (a, b)]
            total = total + parts[0] * parts[1]
        return (total & 0xFFFFFFFF).astype(_U)

    return function


_B = "u32 u32"
_T = "u32 u32 u32"
ROWS: dict[str, Row] = {
    "v_mov_b32": Row("u32", "u32", lambda x: x),
    "v_mov_b64": Row("u64", "u64", lambda x: x),
    "v_accvgpr_write_b32": Row("u32", "u32", lambda x: x),
    "v_accvgpr_read_b32": Row("u32", "u32", lambda x: x),
    "v_accvgpr_mov_b32": Row("u32", "u32", lambda x: x),
    "v_not_b32": Row("u32", "u32", np.invert),
    "v_bfrev_b32": Row("u32", "u32", bit_reverse),
    "v_ffbh_u32": Row("u32", "u32", find_high_bit),
    "v_ffbh_i32": Row("u32", "i32", find_high_bit_signed),
    "v_ffbl_b32": Row("u32", "u32", find_low_bit),
    "v_and_b32": Row("u32", _B, np.bitwise_and),
    "v_or_b32": Row("u32", _B, np.bitwise_or),
    "v_xor_b32": Row("u32", _B, np.bitwise_xor),
    "v_xnor_b32": Row("u32", _B, lambda a, b: ~(a ^ b)),
    "v_add_u32": _sum("u32", _U, np.add),
    "v_add_i32": _sum("i32", _I, np.add),
    "v_sub_u32": _sum("u32", _U, np.subtract),
    "v_sub_i32": _sum("i32", _I, np.subtract),
    "v_subrev_u32": _sum("u32", _U, _reversed),
    "v_min_u32": Row("u32", _B, np.minimum),
    "v_max_u32": Row("u32", _B, np.maximum),
    "v_min_i32": Row("i32", "i32 i32", np.minimum),
    "v_max_i32": Row("i32", "i32 i32", np.maximum),
    "v_lshlrev_b32": Row("u32", _B, _shift_left),
    "v_lshrrev_b32": Row("u32", _B, lambda by, x: x >> (by & _U(31))),
    "v_ashrrev_i32": Row("i32", "i32 i32", lambda by, x: x >> (by & _I(31))),
    "v_lshlrev_b64": Row("u64", "u32 u64", lambda by, x: x << (_u64(by) & np.uint64(63))),
    "v_lshrrev_b64": Row("u64", "u32 u64", lambda by, x: x >> (_u64(by) & np.uint64(63))),
    "v_ashrrev_i64": Row("i64", "u32 i64", lambda by, x: x >> (_i64(by) & 63)),
    "v_mul_lo_u32": Row("u32", _B, np.multiply),
    "v_mul_hi_u32": Row("u32", _B, mul_hi_u32),
    "v_mul_hi_i32": Row("i32", "i32 i32", mul_hi_i32),
    "v_mul_u32_u24": Row("u32", _B, lambda a, b: (a & _24) * (b & _24)),
    "v_mul_i32_i24": Row("i32", "i32 i32", lambda a, b: _signed24(a) * _signed24(b)),
    "v_mul_hi_u32_u24": Row("u32", _B, lambda a, b: mul_hi_u32(a & _24, b & _24)),
    "v_mad_u32_u24": Row("u32", _T, lambda a, b, c: (a & _24) * (b & _24) + c),
    "v_mad_i32_i24": Row("i32", "i32 i32 i32", lambda a, b, c: _signed24(a) * _signed24(b) + c),
    "v_add3_u32": Row("u32", _T, lambda a, b, c: a + b + c),
    "v_or3_b32": Row("u32", _T, lambda a, b, c: a | b | c),
    "v_and_or_b32": Row("u32", _T, lambda a, b, c: (a & b) | c),
    "v_xad_u32": Row("u32", _T, lambda a, b, c: (a ^ b) + c),
    "v_add_lshl_u32": Row("u32", _T, lambda a, b, c: (a + b) << (c & _U(31))),
    "v_lshl_add_u32": Row("u32", _T, lambda a, b, c: (a << (b & _U(31))) + c),
    "v_lshl_or_b32": Row("u32", _T, lambda a, b, c: (a << (b & _U(31))) | c),
    "v_lshl_add_u64": Row("u64", "u64 u32 u64", lambda a, b, c: (a << (_u64(b) & np.uint64(7))) + c),
    "v_bfe_u32": Row("u32", _T, bfe_u32),
    "v_bfe_i32": Row("i32", "i32 u32 u32", bfe_i32),
    "v_bfi_b32": Row("u32", _T, lambda m, a, b: (m & a) | (~m & b)),
    "v_bfm_b32": Row("u32", _B, lambda n, at: ((_U(1) << (n & _U(31))) - _U(1)) << (at & _U(31))),
    "v_bcnt_u32_b32": Row("u32", _B, lambda x, more: np.bitwise_count(x).astype(_U) + more),
    "v_alignbit_b32": Row("u32", _T, align_bits),
    "v_alignbyte_b32": Row("u32", _T, align_bytes),
    "v_perm_b32": Row("u32", _T, perm),
    "v_sad_u32": Row("u32", _T, absolute_difference),
    "v_max3_u32": Row("u32", _T, lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_min3_u32": Row("u32", _T, lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_med3_u32": Row("u32", _T, _med3),
    "v_max3_i32": Row("i32", "i32 i32 i32", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    "v_min3_i32": Row("i32", "i32 i32 i32", lambda a, b, c: np.minimum(np.minimum(a, b), c)),
    "v_med3_i32": Row("i32", "i32 i32 i32", _med3),
    "v_dot4_i32_i8": Row("u32", _T, _dot(8, True)),
    "v_dot4c_i32_i8": Row("u32", _T, _dot(8, True), True),
    "v_dot8_i32_i4": Row("u32", _T, _dot(4, True)),
    "v_dot8c_i32_i4": Row("u32", _T, _dot(4, True), True),
    "v_dot4_u32_u8": Row("u32", _T, _dot(8, False)),
    "v_dot8_u32_u4": Row("u32", _T, _dot(4, False)),
    # 16 bits: the other half of the register becomes zero, but for the VOP3 forms that multiply and add.
    "v_add_u16": _sum("u16", np.uint16, np.add),
    "v_sub_u16": _sum("u16", np.uint16, np.subtract),
    "v_subrev_u16": _sum("u16", np.uint16, _reversed),
    "v_add_i16": Row("i16", "i16 i16", np.add, False, True),
    "v_sub_i16": Row("i16", "i16 i16", np.subtract, False, True),
    "v_mul_lo_u16": Row("u16", "u16 u16", np.multiply),
    "v_mad_u16": Row("u16", "u16 u16 u16", lambda a, b, c: a * b + c, False, True),
    "v_mad_legacy_u16": Row("u16", "u16 u16 u16", lambda a, b, c: a * b + c),
    "v_min_u16": Row("u16", "u16 u16", np.minimum),
    "v_max_u16": Row("u16", "u16 u16", np.maximum),
    "v_min_i16": Row("i16", "i16 i16", np.minimum),
    "v_max_i16": Row("i16", "i16 i16", np.maximum),
    "v_lshlrev_b16": Row("u16", "u16 u16", lambda by, x: x << (by & np.uint16(15))),
    "v_lshrrev_b16": Row("u16", "u16 u16", lambda by, x: x >> (by & np.uint16(15))),
    "v_ashrrev_i16": Row("i16", "i16 i16", lambda by, x: x >> (by & np.int16(15))),
    "v_med3_i16": Row("i16", "i16 i16 i16", _med3, False, True),
    "v_med3_u16": Row("u16", "u16 u16 u16", _med3, False, True),
    "v_mad_u32_u16": Row("u32", "u16 u16 u32", lambda a, b, c: a.astype(_U) * b.astype(_U) + c),
    "v_mad_i32_i16": Row("i32", "i16 i16 i32", lambda a, b, c: a.astype(_I) * b.astype(_I) + c),
}

"""Operations of the scalar ALU as functions of NumPy arrays over waves.

ISA guide: "Scalar ALU Operations", "SOP2", "SOPK", "SOP1", "SOPC". A row gives kinds and a function
that returns the result, or the result and SCC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from arena.platforms.cpu.amd_isa import vector_int

Array = Any
_U, _I, _U64, _I64 = np.uint32, np.int32, np.uint64, np.int64


class ScalarRow(NamedTuple):
    """One scalar operation. `scc`: `carry` (the function returns it too), `nonzero` (of the result), or empty."""

    to: str
    sources: str
    function: Callable[..., Any]
    scc: str = ""


def _add_u32(a: Array, b: Array) -> tuple[Array, Array]:
    total = a + b
    return total, total < a


def _sub_u32(a: Array, b: Array) -> tuple[Array, Array]:
    return a - b, b > a


def add_i32(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the sum and whether it overflows as a signed one."""
    total = a + b
    return total, ((a >= 0) == (b >= 0)) & ((total >= 0) != (a >= 0))


def _sub_i32(a: Array, b: Array) -> tuple[Array, Array]:
    total = a - b
    return total, ((a >= 0) != (b >= 0)) & ((total >= 0) != (a >= 0))


def _chosen(function: Callable[[Array, Array], Array], first: Callable[[Array, Array], Array]) -> Callable[..., Any]:
    """Minimum or maximum: SCC is whether the first operand is the result."""
    return lambda a, b: (function(a, b), first(a, b))


def _shift_add(by: int) -> Callable[[Array, Array], tuple[Array, Array]]:
    def function(a: Array, b: Array) -> tuple[Array, Array]:
        wide = (a.astype(_U64) << _U64(by)) + b
        return wide.astype(_U), wide > _U64(0xFFFFFFFF)

    return function


def _bfe64(signed: bool) -> Callable[[Array, Array], Array]:
    def function(x: Array, field: Array) -> Array:
        offset, width = field & _U(63), np.minimum((field >> _U(16)) & _U(127), 64)
        left = (64 - offset.astype(_I64) - width).astype(_U64)
        up = np.where(width == 0, _U64(0), x.view(_U64) << np.minimum(left, _U64(63)))
        down = np.minimum((64 - width.astype(_I64)).astype(_U64), _U64(63))
        return (up.view(_I64) >> down.view(_I64)) if signed else up >> down

    return function


def _bfe(signed: bool) -> Callable[[Array, Array], Array]:
    extract = vector_int.bfe_i32 if signed else vector_int.bfe_u32

    def function(x: Array, field: Array) -> Array:
        width = (field >> _U(16)) & _U(127)
        whole = x >> (field & _U(31)).astype(x.dtype)
        return np.where(width >= 32, whole, extract(x, field & _U(31), np.minimum(width, _U(31))))

    return function


def _reverse64(x: Array) -> Array:
    low, high = x.astype(_U), (x >> _U64(32)).astype(_U)
    return (vector_int.bit_reverse(low).astype(_U64) << _U64(32)) | vector_int.bit_reverse(high)


def _first_one64(x: Array) -> Array:
    return np.where(x == 0, _U(0xFFFFFFFF), np.bitwise_count((x & (~x + _U64(1))) - _U64(1)).astype(_U))


def _leading64(x: Array) -> Array:
    high, low = (x >> _U64(32)).astype(_U), x.astype(_U)
    found = np.where(high != 0, vector_int.find_high_bit(high), vector_int.find_high_bit(low) + _U(32))
    return np.where(x == 0, _U(0xFFFFFFFF), found)


def _field_mask(bits: int) -> Callable[[Array, Array], Array]:
    dtype = _U if bits == 32 else _U64

    def function(width: Array, offset: Array) -> Array:
        return ((dtype(1) << (width.astype(dtype) & dtype(bits - 1))) - dtype(1)) << (
            offset.astype(dtype) & dtype(bits - 1)
        )

    return function


def _wqm(x: Array) -> Array:
    quads = x | (x >> _U64(1))
    quads = (quads | (quads >> _U64(2))) & _U64(0x1111111111111111)
    return quads * _U64(15)


LOGIC: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
_SHIFTS = {
    "s_lshl_b": (lambda x, by, mask: x << (by & mask).astype(x.dtype), "u"),
    "s_lshr_b": (lambda x, by, mask: x >> (by & mask).astype(x.dtype), "u"),
    "s_ashr_i": (lambda x, by, mask: x >> (by & mask).astype(x.dtype), "i"),
}


def _shifts() -> dict[str, ScalarRow]:
    rows = {}
    for name, (function, sign) in _SHIFTS.items():
        for bits in (32, 64):
            shift = lambda x, by, function=function, bits=bits: function(x, by, _U(bits - 1))  # noqa: E731
            rows[f"{name}{bits}"] = ScalarRow(f"{sign}{bits}", f"{sign}{bits} u32", shift, "nonzero")
    return rows


ROWS: dict[str, ScalarRow] = {
    **{
        f"s_{name}_b{bits}": ScalarRow(f"u{bits}", f"u{bits} u{bits}", function, "nonzero")
        for name, function in LOGIC.items()
        for bits in (32, 64)
    },
    **_shifts(),
    **{f"s_lshl{n}_add_u32": ScalarRow("u32", "u32 u32", _shift_add(n), "carry") for n in (1, 2, 3, 4)},
    "s_add_u32": ScalarRow("u32", "u32 u32", _add_u32, "carry"),
    "s_sub_u32": ScalarRow("u32", "u32 u32", _sub_u32, "carry"),
    "s_add_i32": ScalarRow("i32", "i32 i32", add_i32, "carry"),
    "s_sub_i32": ScalarRow("i32", "i32 i32", _sub_i32, "carry"),
    "s_mul_i32": ScalarRow("i32", "i32 i32", np.multiply),
    "s_mul_hi_u32": ScalarRow("u32", "u32 u32", vector_int.mul_hi_u32),
    "s_mul_hi_i32": ScalarRow("i32", "i32 i32", vector_int.mul_hi_i32),
    "s_min_i32": ScalarRow("i32", "i32 i32", _chosen(np.minimum, np.less), "carry"),
    "s_min_u32": ScalarRow("u32", "u32 u32", _chosen(np.minimum, np.less), "carry"),
    "s_max_i32": ScalarRow("i32", "i32 i32", _chosen(np.maximum, np.greater), "carry"),
    "s_max_u32": ScalarRow("u32", "u32 u32", _chosen(np.maximum, np.greater), "carry"),
    "s_absdiff_i32": ScalarRow("i32", "i32 i32", lambda a, b: np.abs(a - b), "nonzero"),
    "s_bfe_u32": ScalarRow("u32", "u32 u32", _bfe(False), "nonzero"),
    "s_bfe_i32": ScalarRow("i32", "i32 u32", _bfe(True), "nonzero"),
    "s_bfe_u64": ScalarRow("u64", "u64 u32", _bfe64(False), "nonzero"),
    "s_bfe_i64": ScalarRow("i64", "i64 u32", _bfe64(True), "nonzero"),
    "s_bfm_b32": ScalarRow("u32", "u32 u32", _field_mask(32)),
    "s_bfm_b64": ScalarRow("u64", "u32 u32", _field_mask(64)),
    "s_pack_ll_b32_b16": ScalarRow("u32", "u32 u32", lambda a, b: (a & _U(0xFFFF)) | (b << _U(16))),
    "s_pack_lh_b32_b16": ScalarRow("u32", "u32 u32", lambda a, b: (a & _U(0xFFFF)) | (b & _U(0xFFFF0000))),
    "s_pack_hh_b32_b16": ScalarRow("u32", "u32 u32", lambda a, b: (a >> _U(16)) | (b & _U(0xFFFF0000))),
    "s_mov_b32": ScalarRow("u32", "u32", lambda x: x),
    "s_mov_b64": ScalarRow("u64", "u64", lambda x: x),
    "s_movk_i32": ScalarRow("i32", "i32", lambda x: x.astype(np.int16).astype(_I)),
    "s_not_b32": ScalarRow("u32", "u32", np.invert, "nonzero"),
    "s_not_b64": ScalarRow("u64", "u64", np.invert, "nonzero"),
    "s_abs_i32": ScalarRow("i32", "i32", np.abs, "nonzero"),
    "s_brev_b32": ScalarRow("u32", "u32", vector_int.bit_reverse),
    "s_brev_b64": ScalarRow("u64", "u64", _reverse64),
    "s_bcnt0_i32_b32": ScalarRow("u32", "u32", lambda x: np.bitwise_count(~x).astype(_U), "nonzero"),
    "s_bcnt1_i32_b32": ScalarRow("u32", "u32", lambda x: np.bitwise_count(x).astype(_U), "nonzero"),
    "s_bcnt0_i32_b64": ScalarRow("u32", "u64", lambda x: np.bitwise_count(~x).astype(_U), "nonzero"),
    "s_bcnt1_i32_b64": ScalarRow("u32", "u64", lambda x: np.bitwise_count(x).astype(_U), "nonzero"),
    "s_ff1_i32_b32": ScalarRow("u32", "u32", vector_int.find_low_bit),
    "s_ff1_i32_b64": ScalarRow("u32", "u64", _first_one64),
    "s_flbit_i32_b32": ScalarRow("u32", "u32", vector_int.find_high_bit),
    "s_flbit_i32_b64": ScalarRow("u32", "u64", _leading64),
    "s_flbit_i32": ScalarRow("u32", "i32", vector_int.find_high_bit_signed),
    "s_sext_i32_i8": ScalarRow("i32", "i32", lambda x: x.astype(np.int8).astype(_I)),
    "s_sext_i32_i16": ScalarRow("i32", "i32", lambda x: x.astype(np.int16).astype(_I)),
    "s_wqm_b64": ScalarRow("u64", "u64", _wqm, "nonzero"),
}

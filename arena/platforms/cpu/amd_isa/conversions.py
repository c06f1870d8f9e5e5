"""Conversions between number formats, with bfloat16 and the 8-bit floats of both kinds.

ISA guide: "VOP1 Instructions", "VOP3A & VOP3B Instructions". gfx942 has 8-bit floats without infinities
and with one NaN, at 0x80 (FNUZ); gfx950 has those of the OCP specification.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.valu import Row

Array = Any


def to_integer(x: Array, dtype: Any) -> Array:
    """Truncate to an integer type; saturate, and take NaN for 0."""
    info = np.iinfo(dtype)
    wide = np.nan_to_num(np.trunc(np.asarray(x, np.float64)), nan=0.0, posinf=float(info.max), neginf=float(info.min))
    return np.clip(wide, float(info.min), float(info.max)).astype(np.int64).astype(dtype)


def from_bfloat16(bits: Array) -> Array:
    """Return float32 from the 16 bits of a bfloat16."""
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bfloat16(x: Array) -> Array:
    """Return the 16 bits of the nearest bfloat16, ties to even, from float32."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    quiet = bits | np.uint32(0x400000)
    return (np.where(np.isnan(x), quiet, rounded) >> np.uint32(16)).astype(np.uint16)


def _table(exponent_bits: int, mantissa_bits: int, fnuz: bool) -> Array:
    """Return the float32 value of every byte."""
    bias = (1 << exponent_bits - 1) - (0 if fnuz else 1)
    values = np.empty(256, np.float32)
    for byte in range(256):
        exponent, mantissa = byte >> mantissa_bits & (1 << exponent_bits) - 1, byte & (1 << mantissa_bits) - 1
        fraction = mantissa / (1 << mantissa_bits)
        size = 2.0 ** (1 - bias) * fraction if exponent == 0 else 2.0 ** (exponent - bias) * (1 + fraction)
        if not fnuz and exponent == (1 << exponent_bits) - 1:
            if exponent_bits == 5:
                size = np.inf if mantissa == 0 else np.nan
            elif mantissa == 7:
                size = np.nan
        values[byte] = -size if byte & 128 else size
    if fnuz:
        values[128] = np.nan
    return values


_TABLES = {
    (name, arch): _table(*(4, 3) if name == "fp8" else (5, 2), arch == "gfx942")
    for name in ("fp8", "bf8")
    for arch in ("gfx942", "gfx950")
}


def from_float8(octets: Array, name: str, arch: str) -> Array:
    """Return float32 from bytes; `name`: `fp8` (4 exponent bits) or `bf8` (5)."""
    return _TABLES[name, arch][octets]


def to_float8(x: Array, name: str, arch: str) -> Array:
    """Return the bytes of the nearest 8-bit floats, ties to even; what is too large saturates or becomes NaN or inf.

    Conversion instructions do not saturate by default: out of range becomes NaN (FNUZ, E4M3) or infinity (E5M2).
    """
    x = np.asarray(x, np.float32)
    values = _TABLES[name, arch][:128].astype(np.float64)
    finite = values[np.isfinite(values)]
    size = np.abs(x).astype(np.float64)
    upper = np.clip(np.searchsorted(finite, size), 1, len(finite) - 1)
    lower = upper - 1
    below, above = size - finite[lower], finite[upper] - size
    nearer = np.where((below < above) | ((below == above) & (lower % 2 == 0)), lower, upper)
    nearer = np.where(size == 0, 0, nearer)
    step = finite[-1] - finite[-2]
    last_even = (len(finite) - 1) % 2 == 0
    limit = finite[-1] + step / 2
    over = (size > limit) | (size == limit) & (not last_even)
    fnuz = arch == "gfx942"
    special = 0x80 if fnuz else (0x7C if name == "bf8" else 0x7F)
    signed = np.where(np.signbit(x) & ~(fnuz & (nearer == 0)), nearer | 0x80, nearer)
    with_over = np.where(over, special if fnuz else special | np.where(np.signbit(x), 0x80, 0), signed)
    nan = 0x80 if fnuz else 0x7F
    return np.where(np.isnan(x), nan, with_over).astype(np.uint8)


def pack(low: Array, high: Array) -> Array:
    """Return words from two arrays of 16 bits."""
    low, high = (np.asarray(part).view(np.uint16).astype(np.uint32) for part in (low, high))
    return low | (high << np.uint32(16))


def _toward_zero16(x: Array) -> Array:
    """Return float16 from float32, rounded toward zero."""
    x = np.asarray(x, np.float32)
    nearest = x.astype(np.float16)
    too_far = np.abs(nearest.astype(np.float32)) > np.abs(x)
    return np.where(too_far, np.nextafter(nearest, np.float16(0)), nearest)


def _normalized(x: Array, scale: int, dtype: Any) -> Array:
    low = -1.0 if np.issubdtype(dtype, np.signedinteger) else 0.0
    return np.rint(np.clip(np.nan_to_num(np.asarray(x, np.float64)), low, 1.0) * scale).astype(dtype)


def _byte(x: Array, number: int) -> Array:
    return ((np.asarray(x) >> np.uint32(8 * number)) & np.uint32(255)).astype(np.float32)


_INTEGERS = {"u32": np.uint32, "i32": np.int32, "u16": np.uint16, "i16": np.int16}
_FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def _to_floats() -> dict[str, Row]:
    rows = {}
    for to, dtype in _FLOATS.items():
        for kind in (*_INTEGERS, *_FLOATS):
            if kind != to:
                rows[f"v_cvt_{to}_{kind}"] = Row(to, kind, lambda x, dtype=dtype: np.asarray(x).astype(dtype))
    return rows


def _to_integers() -> dict[str, Row]:
    return {
        f"v_cvt_{to}_{kind}": Row(to, kind, lambda x, dtype=dtype: to_integer(x, dtype))
        for to, dtype in _INTEGERS.items()
        for kind in _FLOATS
    }


ROWS: dict[str, Row] = {
    **_to_floats(),
    **_to_integers(),
    **{f"v_cvt_f32_ubyte{n}": Row("f32", "u32", lambda x, n=n: _byte(x, n)) for n in range(4)},
    "v_cvt_flr_i32_f32": Row("i32", "f32", lambda x: to_integer(np.floor(x), np.int32)),
    "v_cvt_rpi_i32_f32": Row("i32", "f32", lambda x: to_integer(np.floor(x + np.float32(0.5)), np.int32)),
    "v_cvt_pkrtz_f16_f32": Row("u32", "f32 f32", lambda a, b: pack(_toward_zero16(a), _toward_zero16(b))),
    "v_cvt_pk_f16_f32": Row("u32", "f32 f32", lambda a, b: pack(a.astype(np.float16), b.astype(np.float16))),
    "v_cvt_pk_bf16_f32": Row("u32", "f32 f32", lambda a, b: pack(to_bfloat16(a), to_bfloat16(b))),
    "v_cvt_f32_bf16": Row("f32", "u16", from_bfloat16),
    "v_cvt_pk_u16_u32": Row("u32", "u32 u32", lambda a, b: pack(*(np.minimum(x, 65535).astype("u2") for x in (a, b)))),
    "v_cvt_pk_i16_i32": Row(
        "u32", "i32 i32", lambda a, b: pack(*(np.clip(x, -32768, 32767).astype(np.int16) for x in (a, b)))
    ),
    "v_cvt_pknorm_i16_f32": Row(
        "u32", "f32 f32", lambda a, b: pack(*(_normalized(x, 32767, np.int16) for x in (a, b)))
    ),
    "v_cvt_pknorm_u16_f32": Row(
        "u32", "f32 f32", lambda a, b: pack(*(_normalized(x, 65535, np.uint16) for x in (a, b)))
    ),
    "v_pack_b32_f16": Row("u32", "f16 f16", pack),
}

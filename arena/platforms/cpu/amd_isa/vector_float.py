"""Floating-point vector operations, 16, 32 and 64 bits.

ISA guide: "VOP2", "VOP1", "VOP3A & VOP3B Instructions". Results of fused operations are computed in
float64 and rounded once more; for float64 itself the product's error is added, so that a rounding can differ by one
unit in the last place. Transcendentals are rounded from float64: hardware may differ by one unit. Denormals are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from arena.platforms.cpu.amd_isa.valu import Row

Array = Any
_SPLITTER = np.float64((1 << 27) + 1)


def fma32(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c in float32 from float32."""
    return (np.float64(1) * a * b + c).astype(np.float32)


def fma16(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c in float16 from float16; exact in float64 before it is rounded."""
    return (np.float64(1) * a * b + c).astype(np.float16)


def fma64(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c in float64, with the error of the product added (Dekker's product, Knuth's sum)."""
    product = a * b
    high_a, high_b = _high(a), _high(b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    total = product + c
    kept = total - product
    rest = (product - (total - kept)) + (c - kept) + error
    return np.where(np.isfinite(rest), total + np.nan_to_num(rest), total)


def _high(x: Array) -> Array:
    scaled = _SPLITTER * x
    return scaled - (scaled - x)


def saturated(value: Array, sources: Sequence[Array]) -> Array:
    """Return float16 with the largest number where finite sources gave infinity (FP16_OVFL)."""
    value = np.asarray(value)
    finite = np.logical_and.reduce([np.broadcast_to(np.isfinite(x), value.shape) for x in sources])
    return np.where(np.isinf(value) & finite, np.copysign(np.finfo(np.float16).max, value), value)


def mix(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c in float32, from float32."""
    return fma32(a, b, c)


def _in64(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Compute in float64 and round to the source's type."""
    return lambda x: function(np.asarray(x, np.float64)).astype(np.asarray(x).dtype)


def _reciprocal(x: Array) -> Array:
    return 1.0 / x


def _reciprocal_root(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def _sine(x: Array) -> Array:
    return np.sin(2.0 * np.pi * np.remainder(x, 1.0))


def _cosine(x: Array) -> Array:
    return np.cos(2.0 * np.pi * np.remainder(x, 1.0))


def _fraction(x: Array) -> Array:
    largest = np.nextafter(x.dtype.type(1), x.dtype.type(0))
    return np.minimum(x - np.floor(x), largest)


def _ldexp(x: Array, by: Array) -> Array:
    return np.ldexp(x, by.astype(np.int32))


def _mantissa(x: Array) -> Array:
    mantissas: Array = np.frexp(x)[0]
    return np.where(np.isfinite(x), mantissas, x)


def _exponent(x: Array) -> Array:
    exponents: Array = np.frexp(x)[1]
    return np.where(np.isfinite(x), exponents, np.int32(0))


def minimum(a: Array, b: Array) -> Array:
    """The lesser one; the other where one is NaN, and -0 below +0."""
    return np.where((a == b) & np.signbit(a), a, np.fmin(a, b))


def maximum(a: Array, b: Array) -> Array:
    """The greater one; the other where one is NaN, and +0 above -0."""
    return np.where((a == b) & ~np.signbit(a), a, np.fmax(a, b))


def median(a: Array, b: Array, c: Array) -> Array:
    """The middle one of three; the least where one is NaN."""
    middle = np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))
    least = np.fmin(np.fmin(a, b), c)
    return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), least, middle)


def _max3(a: Array, b: Array, c: Array) -> Array:
    return np.fmax(np.fmax(a, b), c)


def _min3(a: Array, b: Array, c: Array) -> Array:
    return np.fmin(np.fmin(a, b), c)


def _legacy(a: Array, b: Array) -> Array:
    """Zero times anything is zero."""
    return np.where((a == 0) | (b == 0), np.float32(0), a * b)


def _subtract_reversed(a: Array, b: Array) -> Array:
    return b - a


def div_fixup(quotient: Array, denominator: Array, numerator: Array) -> Array:
    """Return the quotient, or the special value that the operands of the division call for (V_DIV_FIXUP)."""
    kind = np.result_type(quotient, denominator, numerator).type
    quotient, denominator, numerator = np.broadcast_arrays(quotient, denominator, numerator)
    signed = np.where(np.signbit(denominator) ^ np.signbit(numerator), kind(-1), kind(1))
    result = np.where(np.isfinite(quotient), np.abs(quotient), kind(np.inf)) * signed
    apart = np.frexp(numerator)[1] - np.frexp(denominator)[1]
    result = np.where(apart < {2: -30, 4: -150, 8: -1075}[kind().itemsize], kind(0) * signed, result)
    result = np.where(np.isinf(denominator) | (numerator == 0), kind(0) * signed, result)
    result = np.where((denominator == 0) | np.isinf(numerator), kind(np.inf) * signed, result)
    neither = (denominator == 0) & (numerator == 0) | np.isinf(denominator) & np.isinf(numerator)
    result = np.where(neither, kind(np.nan), result)
    result = np.where(np.isnan(denominator), denominator, result)
    return np.where(np.isnan(numerator), numerator, result)


def _dot2(a: Array, b: Array, c: Array) -> Array:
    """Two products of float16 halves and a float32, rounded once."""
    total = np.asarray(c, np.float64)
    for shift in (0, 16):
        halves = [(np.asarray(x) >> np.uint32(shift)).astype(np.uint16).view(np.float16) for x in (a, b)]
        total = total + halves[0].astype(np.float64) * halves[1]
    return total.astype(np.float32)


def _rows_for(kind: str, fma: Callable[..., Any]) -> dict[str, Row]:
    one, two, three = kind, f"{kind} {kind}", f"{kind} {kind} {kind}"
    unary: dict[str, Callable[..., Any]] = {
        "floor": np.floor,
        "ceil": np.ceil,
        "trunc": np.trunc,
        "rndne": np.rint,
        "fract": lambda x: _fraction(np.asarray(x)),
        "sqrt": _in64(np.sqrt) if kind != "f64" else np.sqrt,
        "rsq": _in64(_reciprocal_root),
        "rcp": _in64(_reciprocal),
        "exp": _in64(np.exp2),
        "log": _in64(np.log2),
        "sin": _in64(_sine),
        "cos": _in64(_cosine),
        "frexp_mant": _mantissa,
    }
    binary: dict[str, Callable[..., Any]] = {
        "add": np.add,
        "sub": np.subtract,
        "subrev": _subtract_reversed,
        "mul": np.multiply,
        "min": minimum,
        "max": maximum,
    }
    ternary: dict[str, Callable[..., Any]] = {
        "fma": fma,
        "mad": fma,
        "med3": median,
        "max3": _max3,
        "min3": _min3,
        "div_fixup": div_fixup,
    }
    keeps = kind == "f16"
    return {
        **{f"v_{name}_{kind}": Row(kind, one, function) for name, function in unary.items()},
        **{f"v_{name}_{kind}": Row(kind, two, function) for name, function in binary.items()},
        **{f"v_{name}_{kind}": Row(kind, three, function, False, keeps) for name, function in ternary.items()},
        **{f"v_{name}_{kind}": Row(kind, three, fma) for name in ("fmaak", "fmamk", "madak", "madmk")},
        **{f"v_{name}_{kind}": Row(kind, three, fma, True) for name in ("fmac", "mac")},
    }


ROWS: dict[str, Row] = {
    **_rows_for("f16", fma16),
    **_rows_for("f32", fma32),
    **_rows_for("f64", fma64),
    "v_mul_legacy_f32": Row("f32", "f32 f32", _legacy),
    "v_rcp_iflag_f32": Row("f32", "f32", _in64(_reciprocal)),
    "v_exp_legacy_f32": Row("f32", "f32", _in64(np.exp2)),
    "v_log_legacy_f32": Row("f32", "f32", _in64(np.log2)),
    "v_dot2_f32_f16": Row("f32", "u32 u32 f32", _dot2),
    "v_dot2c_f32_f16": Row("f32", "u32 u32 f32", _dot2, True),
    "v_ldexp_f32": Row("f32", "f32 i32", _ldexp),
    "v_ldexp_f64": Row("f64", "f64 i32", _ldexp),
    "v_ldexp_f16": Row("f16", "f16 i16", _ldexp),
    "v_frexp_exp_i32_f32": Row("i32", "f32", _exponent),
    "v_frexp_exp_i32_f64": Row("i32", "f64", _exponent),
    "v_frexp_exp_i16_f16": Row("i16", "f16", lambda x: _exponent(x).astype(np.int16)),
}

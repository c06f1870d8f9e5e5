"""What each device function computes. Floats are computed in float64 and rounded once, integers in their own type."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from arena.platforms.cpu.triton.internals import Array

Function = Callable[..., Array]


def _real(function: Callable[..., Any]) -> Function:
    """`function` on float64 copies of its arguments; the result stays float64."""

    def call(*args: Array) -> Array:
        return np.asarray(function(*(np.asarray(arg, dtype=np.float64) for arg in args)))

    return call


def _special(name: str) -> Function:
    """A special function that numpy lacks, from `scipy.special`."""

    def call(*args: Array) -> Array:
        from scipy import special

        return np.asarray(getattr(special, name)(*(np.asarray(arg, dtype=np.float64) for arg in args)))

    return call


def _bessel(name: str) -> Function:
    """A Bessel function, which vanishes at infinity; scipy says NaN there."""
    inside = _special(name)

    def call(x: Array) -> Array:
        return np.asarray(np.where(np.isposinf(np.abs(x) if name[0] == "j" else x), 0.0, inside(x)))

    return call


def _round_half_away(x: Array) -> Array:
    return np.asarray(np.copysign(np.floor(np.abs(x) + 0.5 * (np.abs(x) < 2**52)), x))


def _gamma(x: Array) -> Array:
    from scipy import special

    numbers = np.array(x, dtype=np.float64)
    size = np.exp(special.gammaln(numbers))
    # Between -1 and 0 gamma is negative, between -2 and -1 positive, and so on; at negative integers it has poles.
    sign = np.where((numbers < 0) & (np.floor(numbers) % 2 != 0), -1.0, 1.0)
    pole = (numbers < 0) & (numbers == np.floor(numbers))
    return np.asarray(np.where(pole, np.nan, np.where(numbers == 0, np.copysign(np.inf, numbers), sign * size)))


def _bits_of(x: Array) -> Array:
    """The bits of each integer, most significant first, in a new last axis."""
    big_endian = np.ascontiguousarray(x).astype(x.dtype.newbyteorder(">"))
    raw = big_endian.view(np.uint8).reshape(*x.shape, x.dtype.itemsize)
    return np.unpackbits(raw, axis=-1)


def _leading_zeros(x: Array) -> Array:
    ones = _bits_of(x)
    return np.asarray(np.where(ones.any(-1), ones.argmax(-1), ones.shape[-1]))


def _first_set(x: Array) -> Array:
    ones = _bits_of(x)[..., ::-1]
    return np.asarray(np.where(ones.any(-1), ones.argmax(-1) + 1, 0))


def _reversed_bits(x: Array) -> Array:
    packed = np.packbits(_bits_of(x)[..., ::-1], axis=-1)
    return np.ascontiguousarray(packed).view(x.dtype.newbyteorder(">")).reshape(x.shape).astype(x.dtype)


def _same_bits(dtype: str) -> Function:
    return lambda x: np.ascontiguousarray(x).view(dtype)


def _high_half(a: Array, b: Array) -> Array:
    return np.asarray((a.astype(object) * b.astype(object)) >> (a.dtype.itemsize * 8)).astype(a.dtype)


_BY_THE_SAME_NAME = (
    "arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt ceil copysign cos cosh exp exp2 expm1 "
    "fabs floor fmod hypot log log10 log1p log2 rint sin sinh sqrt tan tanh trunc"
)
"""numpy functions whose names the devices share, or shorten (below)."""

FUNCTIONS: dict[str, Function] = {
    **{name: _real(getattr(np, name)) for name in _BY_THE_SAME_NAME.split()},
    "nextafter": np.nextafter,
    "nearbyint": _real(np.rint),
    "llrint": _real(np.rint),
    "round": _real(_round_half_away),
    "llround": _real(_round_half_away),
    "rsqrt": _real(lambda x: 1.0 / np.sqrt(x)),
    "rcbrt": _real(lambda x: 1.0 / np.cbrt(x)),
    "exp10": _real(lambda x: np.power(10.0, x)),
    "pow": _real(np.power),
    "powi": _real(np.power),
    "pown": _real(np.power),
    "remainder": _real(lambda x, y: x - y * np.rint(x / y)),
    "fdim": _real(lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0.0))),
    "fma": _real(lambda x, y, z: x * y + z),
    "rhypot": _real(lambda x, y: 1.0 / np.hypot(x, y)),
    "norm3d": _real(lambda x, y, z: np.sqrt(x * x + y * y + z * z)),
    "rnorm3d": _real(lambda x, y, z: 1.0 / np.sqrt(x * x + y * y + z * z)),
    "norm4d": _real(lambda x, y, z, w: np.sqrt(x * x + y * y + z * z + w * w)),
    "rnorm4d": _real(lambda x, y, z, w: 1.0 / np.sqrt(x * x + y * y + z * z + w * w)),
    "sinpi": _real(lambda x: np.sin(np.pi * np.fmod(x, 2.0))),
    "cospi": _real(lambda x: np.cos(np.pi * np.fmod(x, 2.0))),
    "ldexp": lambda x, n: np.ldexp(np.asarray(x, np.float64), n),
    "scalbn": lambda x, n: np.ldexp(np.asarray(x, np.float64), n),
    "logb": _real(lambda x: np.where(x == 0, -np.inf, np.where(np.isfinite(x), np.frexp(x)[1] - 1.0, np.abs(x)))),
    "ilogb": _real(
        lambda x: np.where(np.isfinite(x) & (x != 0), np.frexp(x)[1] - 1.0, np.where(np.isinf(x), 2.0**31, -(2.0**31)))
    ),
    "saturate": _real(lambda x: np.fmin(np.fmax(x, 0.0), 1.0)),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "finite": np.isfinite,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "abs": np.abs,
    "iabs": np.abs,
    "erf": _special("erf"),
    "erfc": _special("erfc"),
    "erfcx": _special("erfcx"),
    "erfinv": _special("erfinv"),
    "erfcinv": _real(lambda x: FUNCTIONS["erfinv"](1.0 - x)),
    "normcdf": _special("ndtr"),
    "normcdfinv": _special("ndtri"),
    "lgamma": _special("gammaln"),
    "tgamma": _gamma,
    "cyl_bessel_i0": _special("i0"),
    "cyl_bessel_i1": _special("i1"),
    "i0": _special("i0"),
    "i1": _special("i1"),
    "j0": _bessel("j0"),
    "j1": _bessel("j1"),
    "y0": _bessel("y0"),
    "y1": _bessel("y1"),
    "clz": _leading_zeros,
    "popc": lambda x: _bits_of(x).sum(-1),
    "popcount": lambda x: _bits_of(x).sum(-1),
    "ffs": _first_set,
    "brev": _reversed_bits,
    "mulhi": _high_half,
    "umulhi": _high_half,
    "mul64hi": _high_half,
    "umul64hi": _high_half,
    "float_as_int": _same_bits("i4"),
    "float_as_uint": _same_bits("u4"),
    "int_as_float": _same_bits("f4"),
    "uint_as_float": _same_bits("f4"),
    "double_as_longlong": _same_bits("i8"),
    "longlong_as_double": _same_bits("f8"),
}
for _long, _short in {"arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2"}.items():
    FUNCTIONS[_short] = FUNCTIONS[_long]
for _name in ("acosh", "asinh", "atanh"):
    FUNCTIONS[_name] = FUNCTIONS[f"arc{_name[1:]}"]
for _name in ("cos", "exp10", "exp", "log10", "log2", "log", "pow", "sin", "tan", "tanh"):
    FUNCTIONS[f"fast_{_name}"] = FUNCTIONS[_name]
FUNCTIONS["fast_fdivide"] = _real(np.divide)

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "fma": lambda x, y, z: x * y + z,
}
_WHOLE: dict[str, Callable[[Array], Array]] = {"n": np.rint, "z": np.trunc, "u": np.ceil, "d": np.floor}
_FLOATS: dict[str, np.dtype[Any]] = {
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "f": np.dtype(np.float32),
    "d": np.dtype(np.float64),
}
_CONVERSION = re.compile(r"^(?:float|double|u?int|u?ll)2(float|double|u?int|u?ll)_r([nzud])$")
_DIRECTED = re.compile(r"^(f|d)?(add|sub|mul|div|rcp|sqrt|rsqrt|fma)(f)?_r([nzud])$")


def conversion(name: str) -> Function | None:
    """Functions that state their rounding: `float2int_rz`, `fadd_rd`. None where `name` is no such function.

    Directed rounding is exact for fp32 results; float64 results are rounded to nearest.
    """
    match = _CONVERSION.match(name)
    if match:
        to, mode = match.groups()
        if to in _FLOATS:
            return lambda x: _rounded(np.asarray(x, np.float64), _FLOATS[to], mode)
        return _real(_WHOLE[mode])
    match = _DIRECTED.match(name)
    if match is None:
        return None
    kind, operator, single, mode = match.groups()
    dtype = _FLOATS["f" if single else kind or "d"]
    compute = _real(_OPERATORS[operator])
    return lambda *args: _rounded(compute(*args), dtype, mode)


def _rounded(exact: Array, dtype: np.dtype[Any], mode: str) -> Array:
    """`exact` (float64) as `dtype`, rounded to nearest, toward zero, up or down."""
    nearest = exact.astype(dtype)
    back = nearest.astype(np.float64)
    if mode == "n":
        return np.asarray(nearest)
    zero, up, down = (dtype.type(limit) for limit in (0.0, np.inf, -np.inf))
    overshot = {"z": np.abs(back) > np.abs(exact), "u": back < exact, "d": back > exact}[mode]
    return np.asarray(np.where(overshot, np.nextafter(nearest, {"z": zero, "u": up, "d": down}[mode]), nearest))

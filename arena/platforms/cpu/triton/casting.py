"""Casts as compiled Triton does them: round to nearest even, saturate to fp8 and to integers.

Saturation was measured on an H200 with Triton 3.6: fp8 conversions clamp infinities too, a float becomes an integer
of 16 bits or more by clamping, and an 8-bit one by clamping to 16 bits and then dropping the upper byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from arena.platforms.cpu.triton.formats import bits, is_float, is_fp8
from arena.platforms.cpu.triton.internals import Array, Internals


def convert(data: Array, to: np.dtype[Any], *, toward_zero: bool = False) -> Array:
    """`data` as an array of dtype `to`, with a GPU's rounding and saturation."""
    if data.dtype == to:
        return data
    if is_float(data.dtype):
        if to.kind == "b":
            return np.asarray(data != 0)
        if to.kind in "iu":
            return _float_to_integer(data, to)
        if toward_zero and to.itemsize < data.dtype.itemsize:
            return _toward_zero(data, to)
    return _saturated(data, to) if is_fp8(to) else data.astype(to)


def _saturated(data: Array, to: np.dtype[Any]) -> Array:
    import ml_dtypes

    largest = np.float32(ml_dtypes.finfo(to).max)
    return np.clip(data.astype(np.float32), -largest, largest).astype(to)


def _toward_zero(data: Array, to: np.dtype[Any]) -> Array:
    """Round to nearest, then step back by one code where that left the number larger in magnitude."""
    import ml_dtypes

    largest = np.float64(ml_dtypes.finfo(to).max)
    exact = data.astype(np.float64)
    finite = np.where(np.isinf(exact), exact, np.clip(exact, -largest, largest))
    nearest = _saturated(finite, to) if is_fp8(to) else finite.astype(to)
    too_large = np.abs(nearest.astype(np.float64)) > np.abs(exact)
    codes = bits(nearest)
    return np.asarray((codes - too_large.astype(codes.dtype)).view(to))


def _float_to_integer(data: Array, to: np.dtype[Any]) -> Array:
    wide = np.dtype(f"{to.kind}{max(to.itemsize, 2)}")
    limits = np.iinfo(wide)
    whole = np.trunc(data.astype(np.float64))
    below, above, nan = whole < float(limits.min), whole >= float(limits.max) + 1.0, np.isnan(whole)
    odd = below | above | nan
    if not odd.any():
        return np.asarray(whole.astype(wide).astype(to))
    result = np.where(odd, 0.0, whole).astype(wide)
    result[below], result[above] = limits.min, limits.max
    if wide.itemsize == 8:
        result[nan] = np.array(1 << 63, np.uint64).view(wide)
    return result.astype(to)


def mend(at: Internals) -> None:
    """Replace the interpreter's casts."""
    handle, rounding = at.handle, at.member(at.member(at.interpreter, "_ir"), "ROUNDING_MODE")
    original = at.member(at.builder, "create_fp_to_fp")

    def cast(self: Any, src: Any, dst_type: Any, *_: Any) -> Any:
        return handle(convert(src.data, at.np_dtype(dst_type)), dst_type.scalar)

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if "fp8e4b15" in (src.dtype.scalar.name, dst_type.scalar.name):
            return original(self, src, dst_type, rounding_mode)
        toward_zero = rounding_mode == rounding.RTZ
        return handle(convert(src.data, at.np_dtype(dst_type), toward_zero=toward_zero), dst_type.scalar)

    def create_bitcast(self: Any, src: Any, dst_type: Any) -> Any:
        data = src.data if src.data.ndim and src.data.flags.c_contiguous else np.array(src.data, ndmin=1)
        return handle(data.view(at.np_dtype(dst_type)), dst_type.scalar)

    for name in ("cast_impl", "create_si_to_fp", "create_ui_to_fp", "create_fp_to_si", "create_fp_to_ui"):
        at.replace(at.builder, name, cast)
    for name in ("create_fp_ext", "create_fp_trunc", "create_int_cast"):
        at.replace(at.builder, name, cast)
    at.replace(at.builder, "create_fp_to_fp", create_fp_to_fp)
    for name in ("create_bitcast", "create_int_to_ptr", "create_ptr_to_int"):
        at.replace(at.builder, name, create_bitcast)

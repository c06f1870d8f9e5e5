"""`tl.dot` and `tl.dot_scaled`: exact products, accumulated in fp32 (fp64 for fp64, int32 for int8)."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import numpy as np

from arena.platforms.cpu.triton.formats import special_types
from arena.platforms.cpu.triton.internals import Array, Internals

_E2M1_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The eight magnitudes of a 4-bit float, by its low three bits (OCP Microscaling Formats 1.0, section 5.3.3)."""


def matmul(a: Array, b: Array, accumulator: Array) -> Array:
    """`a @ b + accumulator` in the accumulator's type; 16-bit accumulators round once, at the end."""
    kind = accumulator.dtype
    if kind.kind in "iu":
        # float64 holds every product of int8 operands exactly, and has a fast matrix product; int64 has none.
        whole = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
        return np.asarray((whole + accumulator).astype(kind))
    work = np.float64 if kind == np.float64 else np.float32
    product = np.matmul(a.astype(work), b.astype(work))
    return np.asarray((product + accumulator.astype(work)).astype(kind))


def unpack_e2m1(packed: Array, axis: int) -> Array:
    """4-bit floats, two a byte along `axis`, low half first, as fp32 (twice as long along `axis`)."""
    packed = np.moveaxis(packed.view(np.uint8), axis, -1)
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)
    magnitudes = np.array(_E2M1_VALUES, np.float32)[codes & 7]
    return np.moveaxis(np.where(codes & 8, -magnitudes, magnitudes), -1, axis)


def decode_scale(scale: Array) -> Array:
    """Block scales as fp32: bytes are powers of two (E8M0, 255 is NaN), fp8 scales are numbers."""
    if scale.dtype.kind not in "iu":
        return scale.astype(np.float32)
    codes = scale.view(np.uint8).astype(np.int32)
    return np.where(codes == 255, np.float32(np.nan), np.ldexp(np.float32(1), codes - 127))


def mend(at: Internals) -> None:
    """Replace `create_dot`, and replace or add `create_dot_scaled` (new in Triton 3.9's interpreter)."""
    handle, builder = at.handle, at.builder
    to_nearest = at.member(at.interpreter._ir.ROUNDING_MODE, "RTNE")
    formats = at.member(at.interpreter._ir, "ScaleDotElemTypeTY")
    fp8_types = {formats.E4M3: special_types()["fp8e4nv"], formats.E5M2: special_types()["fp8e5"]}

    def values(self: Any, operand: Any) -> Array:
        if operand.dtype.scalar.name == "fp8e4b15":
            return np.asarray(self.create_fp_to_fp(operand, at.tl.float16, to_nearest).data)
        return np.asarray(operand.data)

    def create_dot(self: Any, a: Any, b: Any, d: Any, *_: Any) -> Any:
        return handle(matmul(values(self, a), values(self, b), d.data), d.dtype.scalar)

    def scaled(operand: Any, scale: Any, element: Any, pack_axis: int, *, is_rhs: bool) -> Array:
        if element == formats.E2M1:
            numbers = unpack_e2m1(operand.data, pack_axis)
        else:
            raw = operand.data
            numbers = (raw.view(fp8_types[element]) if raw.dtype.kind in "iu" else raw).astype(np.float32)
        if scale is None:
            return numbers
        factors = decode_scale(scale.data)
        inner = numbers.shape[-2 if is_rhs else -1]
        factors = np.repeat(factors, inner // factors.shape[-1], axis=-1)
        return np.asarray(numbers * (np.swapaxes(factors, -1, -2) if is_rhs else factors))

    def create_dot_scaled(
        self: Any, a: Any, a_scale: Any, a_type: Any, b: Any, b_scale: Any, b_type: Any, *rest: Any
    ) -> Any:
        _fast_math, a_k_pack, b_k_pack, accumulator = rest
        left = scaled(a, a_scale, a_type, -1 if a_k_pack else -2, is_rhs=False)
        right = scaled(b, b_scale, b_type, -2 if b_k_pack else -1, is_rhs=True)
        return handle(matmul(left, right, accumulator.data), accumulator.dtype.scalar)

    at.replace(builder, "create_dot", create_dot)
    if not hasattr(builder, "create_dot_scaled"):
        _mend_constants(at)
    builder.create_dot_scaled = create_dot_scaled


def _mend_constants(at: Internals) -> None:
    """Before 3.9, `tl.dot_scaled` takes `None` and formats only as the compiler passes them: wrapped."""
    original = at.member(at.tl.core, "dot_scaled")
    signature = inspect.signature(original)

    @functools.wraps(original)  # keeps the mark of a builtin, by which the interpreter knows it
    def dot_scaled(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            absent = value is None and name.endswith("_scale")
            if absent or (name.endswith("_format") and isinstance(value, str)):
                bound.arguments[name] = at.tl.constexpr(value)
        return original(*bound.args, **bound.kwargs)

    for module in (at.tl, at.tl.core):
        at.replace(module, "dot_scaled", dot_scaled)

"""Elementwise operators whose numpy stand-ins in Triton's interpreter are wrong for some type, or slow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arena.platforms.cpu.triton.internals import Array, Internals


def erf(data: Array) -> Array:
    """The error function, in float64 inside; numpy has none and Python's takes a microsecond an element."""
    from scipy import special

    return np.asarray(special.erf(np.asarray(data, dtype=np.float64)).astype(data.dtype))


def fused_multiply_add(x: Array, y: Array, z: Array) -> Array:
    """`x * y + z` rounded once to fp16, bfloat16 or fp32, except where float64 lies on a tie (one in 2^29)."""
    product = x.astype(np.float64) * y.astype(np.float64)
    return np.asarray((product + z.astype(np.float64)).astype(z.dtype))


def mend(at: Internals) -> None:
    """Replace operators of the interpreter's builder."""
    _mend_binary(at)
    _mend_comparisons(at)
    _mend_functions(at)
    _mend_constants(at)


def _mend_binary(at: Internals) -> None:
    handle, builder = at.handle, at.builder

    def binary_op(self: Any, lhs: Any, rhs: Any, op: Callable[[Array, Array], Array]) -> Any:
        dtype = lhs.dtype.scalar
        if lhs.data.dtype == np.bool_ and rhs.data.dtype == np.bool_:
            wide = op(lhs.data.astype(np.int8), rhs.data.astype(np.int8))
            return handle(np.asarray(wide & 1).astype(np.bool_), dtype)
        out = np.asarray(op(lhs.data, rhs.data))
        return handle(out if out.dtype == lhs.data.dtype else out.astype(lhs.data.dtype), dtype)

    def integer_division(self: Any, lhs: Any, rhs: Any) -> Any:
        # C divides toward zero; numpy floors. The remainder takes the dividend's sign in both fmod and C.
        whole = (lhs.data - np.fmod(lhs.data, rhs.data)) // rhs.data
        return handle(np.asarray(whole).astype(lhs.data.dtype), lhs.dtype.scalar)

    def shift_arithmetic(self: Any, lhs: Any, rhs: Any) -> Any:
        signed = lhs.data.astype(f"i{lhs.data.dtype.itemsize}")
        return handle((signed >> rhs.data.astype(signed.dtype)).astype(lhs.data.dtype), lhs.dtype.scalar)

    at.replace(builder, "binary_op", binary_op)
    at.replace(builder, "create_frem", lambda self, lhs, rhs: binary_op(self, lhs, rhs, np.fmod))
    at.replace(builder, "create_ashr", shift_arithmetic)
    for name in ("create_idiv", "create_sdiv", "create_udiv"):
        at.replace(builder, name, integer_division)


_COMPARISONS = {
    **{f"create_icmp{name}": name for name in ("SLE", "SLT", "SGE", "SGT", "ULE", "ULT", "UGE", "UGT", "EQ", "NE")},
    **{f"create_fcmp{order}{name}": name for order in "OU" for name in ("LT", "GT", "LE", "GE", "EQ", "NE")},
}
_NUMPY_COMPARISON: dict[str, Callable[[Array, Array], Array]] = {
    "LT": np.less,
    "GT": np.greater,
    "LE": np.less_equal,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}


def _mend_comparisons(at: Internals) -> None:
    """A comparison's handle is of type int1; the interpreter labels it with its operands' type."""
    for method, suffix in _COMPARISONS.items():
        compare = _NUMPY_COMPARISON[suffix[-2:]]

        def create(self: Any, lhs: Any, rhs: Any, compare: Callable[[Array, Array], Array] = compare) -> Any:
            return at.handle(np.asarray(compare(lhs.data, rhs.data)), at.tl.int1)

        at.replace(at.builder, method, create)


def _mend_functions(at: Internals) -> None:
    handle, builder = at.handle, at.builder
    original_fma = at.member(builder, "create_fma")
    exact_fma = hasattr(at.interpreter._interpreter, "fma_fp32")
    keep_nans = at.member(at.interpreter._ir.PROPAGATE_NAN, "ALL")

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        if exact_fma and z.data.dtype.itemsize >= 4:
            return original_fma(self, x, y, z)
        return handle(fused_multiply_add(x.data, y.data, z.data), z.dtype.scalar)

    def create_clampf(self: Any, x: Any, low: Any, high: Any, propagate_nans: Any) -> Any:
        upper, lower = (np.maximum, np.minimum) if propagate_nans == keep_nans else (np.fmax, np.fmin)
        return handle(np.asarray(lower(upper(x.data, low.data), high.data)), x.dtype.scalar)

    def create_umulhi(self: Any, lhs: Any, rhs: Any) -> Any:
        # Signed operands take part by their bit patterns; object arrays hold the 128-bit product of 64-bit ones.
        width, dtype = lhs.data.dtype.itemsize * 8, lhs.data.dtype
        unsigned = [np.ascontiguousarray(side.data).view(f"u{dtype.itemsize}") for side in (lhs, rhs)]
        wide = np.dtype(object) if width == 64 else np.dtype(np.uint64)
        product = (unsigned[0].astype(wide) * unsigned[1].astype(wide)) >> width
        return handle(product.astype(f"u{dtype.itemsize}").view(dtype), lhs.dtype.scalar)

    # NaN loses against a number, unless the kernel asks otherwise; the interpreter of 3.6 and older lets it win.
    at.replace(builder, "create_minnumf", lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmin))
    at.replace(builder, "create_maxnumf", lambda self, lhs, rhs: self.binary_op(lhs, rhs, np.fmax))
    at.replace(builder, "create_fma", create_fma)
    at.replace(builder, "create_clampf", create_clampf)
    at.replace(builder, "create_umulhi", create_umulhi)
    at.replace(builder, "create_erf", lambda self, arg: handle(erf(arg.data), arg.dtype.scalar))


def _mend_constants(at: Internals) -> None:
    """Integer constants wrap to their type, as in compiled code, instead of raising; bfloat16 has constants too."""
    for width in (8, 16, 32, 64):
        for kind in ("int", "uint"):
            dtype, name = np.dtype(f"{kind}{width}"), f"{kind}{width}"

            def create(self: Any, value: Any, dtype: np.dtype[Any] = dtype, name: str = name) -> Any:
                pattern = int(value) & ((1 << dtype.itemsize * 8) - 1)
                data = np.array([pattern], dtype=f"u{dtype.itemsize}").view(dtype)
                return at.handle(data, getattr(at.tl, name))

            at.replace(at.builder, f"get_{name}", create)
    # Missing before 3.9, so that `tl.load(bfloat16_pointer, other=0.0)` failed.
    at.builder.get_bf16 = lambda self, value: self.create_fp_trunc(self.get_fp32(value), at.tl.bfloat16)

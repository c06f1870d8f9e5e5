"""Which numpy type holds each Triton type: bfloat16 and fp8 get ml_dtypes' types instead of bare bit patterns."""

from __future__ import annotations

from typing import Any

import numpy as np

from arena.platforms.cpu.triton.internals import Array, Internals


def special_types() -> dict[str, np.dtype[Any]]:
    """NumPy dtypes by the Triton type's short name; `fp8e4b15` has none and stays a byte."""
    import ml_dtypes

    return {
        "bf16": np.dtype(ml_dtypes.bfloat16),
        "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
        "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
        "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
        "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
    }


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether `dtype` is a floating type, numpy's own or one of `special_types`."""
    return dtype.kind == "f" or dtype in special_types().values()


def is_fp8(dtype: np.dtype[Any]) -> bool:
    """Return whether `dtype` is one of the 8-bit floating types."""
    return dtype.itemsize == 1 and is_float(dtype)


def bits(data: Array) -> Array:
    """The same memory as unsigned integers of the same width."""
    return np.ascontiguousarray(data).view(f"u{data.dtype.itemsize}").reshape(data.shape)


def mend(at: Internals) -> None:
    """Replace the interpreter's table of numpy types."""
    # Filled as it is used: the interpreter's own function builds its whole table at every call.
    known = special_types()
    original = at.member(at.interpreter, "_get_np_dtype")

    def np_dtype(of: Any) -> np.dtype[Any]:
        name = of.scalar.name
        if name not in known:
            known[name] = original(of)
        return known[name]

    at.hold_formats(np_dtype)

"""Dtype names to torch dtypes, and the default tolerance of each: docs/develop/measurement.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arena.task.definition import Tolerance

if TYPE_CHECKING:
    import torch

_UNIT_ROUNDOFF = {
    "float64": 2.0**-53,
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4,
    "float8_e4m3fnuz": 2.0**-4,
    "float8_e5m2": 2.0**-3,
}
"""the greatest relative error of rounding to nearest (IEEE 754-2019; OCP 8-bit floating point)"""
_ROUNDINGS = 2.0
"""an output may be off by twice its own rounding"""
_SAFETY = 4.0
"""times the error of the reference in the allowed arithmetic"""
_LEAST = {"float64": 1e-10}
_LEAST_FLOAT32 = 2.0**-14
"""what float32 may be off by in any case, for other orders of sums and a GPU's own exponentials"""


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype called `name`."""
    import torch

    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def bounds(tolerance: Tolerance, dtype: str, arithmetic_error: float = 0.0) -> tuple[float, float]:
    """Return (atol, rtol) of an output; its error may be at most atol × scale + rtol × |expected|.

    Where the task declares none: atol is four times the arithmetic error, at least 2⁻¹⁴; rtol is that and two roundings
    to the output's dtype.

    Args:
        tolerance: What the task declares.
        dtype: The output's dtype.
        arithmetic_error: Of the reference in the arithmetic that the task allows, relative to scale + |expected|.
    """
    computed = max(_SAFETY * arithmetic_error, _LEAST.get(dtype, _LEAST_FLOAT32))
    atol = computed if tolerance.atol is None else tolerance.atol
    rtol = computed + _ROUNDINGS * _UNIT_ROUNDOFF.get(dtype, 0.0) if tolerance.rtol is None else tolerance.rtol
    return atol, rtol

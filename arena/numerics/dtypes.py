"""Dtype names to torch dtypes, and the default tolerance of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arena.model.task import Tolerance

if TYPE_CHECKING:
    import torch

# atol (in units of the reference's RMS) and rtol, by output dtype.
_CLOSE = {
    "float64": 1e-10,
    "float32": 1e-4,
    "float16": 1e-2,
    "bfloat16": 1e-2,
    "float8_e4m3fn": 1e-1,
    "float8_e5m2": 1e-1,
}


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype called `name`."""
    import torch

    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype)
    return dtype


def bounds(tolerance: Tolerance, dtype: str) -> tuple[float, float]:
    """(atol, rtol) of an output: what the task declares, else the default of its dtype."""
    default = _CLOSE.get(dtype, 0.0)
    atol = default if tolerance.atol is None else tolerance.atol
    rtol = default if tolerance.rtol is None else tolerance.rtol
    return atol, rtol

"""References that cast to short floating-point dtypes, called so that wider inputs keep their precision.

A judge calls a reference in float64. One that rounds to float32 or bfloat16 on its way would round there as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_CASTS = frozenset({"float", "half", "bfloat16", "double"})


class _NoCasts(TorchFunctionMode):
    """Leaves out casts from one floating-point dtype to another."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call `func`; a cast of a floating-point tensor to such a dtype returns the tensor."""
        name, given = getattr(func, "__name__", ""), kwargs or {}
        is_cast = name in _CASTS or (name in ("to", "type") and _is_floating(*args[1:], *given.values()))
        return args[0] if is_cast and args[0].is_floating_point() else func(*args, **given)


def _is_floating(*arguments: Any) -> bool:
    return any(isinstance(value, torch.dtype) and value.is_floating_point for value in arguments)


def call_uncast(function: Callable[..., Any], inputs: Mapping[str, Any], dtypes: Mapping[str, str]) -> Any:
    """Return `function(**inputs)`; where a tensor is wider than its dtype of `dtypes`, without floating-point casts."""
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    if all(str(value.dtype) == f"torch.{dtypes[name]}" for name, value in tensors.items()):
        return function(**inputs)
    with _NoCasts():
        return function(**inputs)


def in_order(results: Any, names: Sequence[str]) -> Any:
    """Return results that may be given by name as a tuple in this order, and numbers as tensors of one element."""
    if isinstance(results, Mapping):
        results = tuple(results[name] for name in names)
    found = tuple(results) if isinstance(results, (tuple, list)) else (results,)
    return tuple(value.reshape(1) if isinstance(value, torch.Tensor) and not value.ndim else value for value in found)

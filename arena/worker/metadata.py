"""Integer metadata: PyTorch's operators on few integers, such as offsets of experts or lengths of sequences.

Host code works out its launches with them: the longest sequence, the counts behind offsets, which expert a block has.
They stay where no output of the task is an integer, and where every tensor is small and holds integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

MOST_ELEMENTS = 4096
"""of each tensor: enough for the sequences of a batch or the experts of a layer"""
MOST_IN_A_CALL = 1 << 16
"""elements of all operands: too few to compute the result of a timed case piece by piece, its bits seen as integers"""
_NAMES = frozenset(
    {
        *("add", "sub", "rsub", "mul", "floor_divide", "div", "remainder", "neg", "abs", "cumsum", "sum"),
        *("minimum", "maximum", "min", "max", "amin", "amax", "argmin", "argmax", "clamp", "clamp_min", "clamp_max"),
        *("eq", "ne", "lt", "le", "gt", "ge", "any", "all", "where", "logical_and", "logical_or", "logical_not"),
        *("bitwise_and", "bitwise_or", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift"),
        *("sort", "argsort", "searchsorted", "bucketize", "bincount", "nonzero", "repeat_interleave"),
        *("index", "index_select", "gather", "cat", "flip", "roll"),
    }
)
"""names at the dispatcher, without overloads and without the underscore of an operator in place"""


def may_compute_metadata(operator: str) -> bool:
    """Return whether an operator of `aten`, named with its overload, is one of those that work on metadata."""
    return operator.partition(".")[0].removesuffix("_") in _NAMES


def elements(*values: Any) -> int | None:
    """Return how many elements tensors among values, and in collections of them, have; None if not all is metadata."""
    import torch

    integers, found = (torch.bool, torch.int32, torch.int64), 0
    for value in _flat(values):
        if isinstance(value, torch.Tensor):
            if value.dtype not in integers or value.numel() > MOST_ELEMENTS:
                return None
            found += value.numel()
        elif isinstance(value, float | complex) or (isinstance(value, torch.dtype) and value not in integers):
            return None
    return found


def with_tensors(operator: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments for an operator's kernel: the dispatcher hands over numbers where the kernel takes tensors."""
    import torch

    name, _, overload = operator.partition(".")
    schema = getattr(getattr(torch.ops.aten, name), overload or "default")._schema
    dtype = next((each.dtype for each in args if isinstance(each, torch.Tensor)), torch.int64)

    def with_tensor(value: Any, kind: str) -> Any:
        if kind != "Tensor" or not isinstance(value, int):
            return value
        return torch.tensor(value, dtype=torch.int64 if dtype == torch.bool else dtype, device="cpu")

    kinds = (str(argument.type) for argument in schema.arguments)
    return tuple(with_tensor(value, kind) for value, kind in zip(args, kinds, strict=False))


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return a value with a function applied to it, or to what it is a list, a tuple or a dictionary of."""
    if isinstance(value, dict):
        return {key: mapped(function, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([mapped(function, each) for each in value])
    return function(value)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        yield value
        return
    for each in value:
        yield from _flat(each)

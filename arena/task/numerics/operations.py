"""What PyTorch is asked for: how many operations, each a launch on a GPU, and how many floating-point operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_FREE = frozenset(
    {"empty", "empty_strided", "empty_like", "new_empty", "arange", "scalar_tensor", "resize", "_unsafe_view"}
)
_PICKED = frozenset({"index", "index_select", "gather", "embedding", "take", "cat", "stack", "repeat", "roll"})
"""of what they read they take as many elements as they return"""
_STEPS = {
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "atan", "erf", "pow"), 2),
    **dict.fromkeys(("sigmoid", "tanh", "softplus", "log_sigmoid_forward", "logsumexp", "elu"), 4),
    **dict.fromkeys(("silu", "mish", "var", "var_mean", "std", "linalg_vector_norm", "_softmax", "_log_softmax"), 5),
    **dict.fromkeys(("gelu", "native_layer_norm", "native_group_norm", "native_batch_norm"), 8),
}
"""operations for each element of an operator that is more than one; all others are one"""
_SORTED = frozenset({"sort", "topk", "argsort", "kthvalue", "median"})


def count_operations(run: Callable[[], object]) -> int:
    """Return how many operations `run()` asks for, views and allocations included, whatever their size."""
    operations = 0

    def counted(function: Any, args: Any, kwargs: Any, result: Any) -> None:
        nonlocal operations
        operations += 1

    with _watched(counted):
        run()
    return operations


def count_flops(run: Callable[[], object]) -> float:
    """Return the floating-point operations that `run()` asks for.

    Matrix products and convolutions count as PyTorch's own counter has it: two for each product of two numbers. Every
    other operator counts one for each element of its largest tensor, what is read or what it returns; functions that
    are made of several steps count these, and sorting log2 of the elements. What only picks elements counts what it
    returns, copies among it. Views and allocations count nothing.
    """
    from torch.utils.flop_counter import flop_registry

    flops = 0.0

    def counted(function: Any, args: Any, kwargs: Any, result: Any) -> None:
        nonlocal flops
        packet = function.overloadpacket
        name = packet.__name__.removesuffix("_") if not packet.__name__.startswith("__") else packet.__name__
        if packet in flop_registry:
            flops += flop_registry[packet](*args, **kwargs, out_val=result)
        elif name not in _FREE and not _is_view(function):
            made = [tensor.numel() for tensor in _tensors(result)]
            read = [] if name in _PICKED else [tensor.numel() for tensor in _tensors((args, kwargs))]
            elements = max([*made, *read], default=0)
            flops += elements * (math.log2(max(elements, 2)) if name in _SORTED else _STEPS.get(name, 1))

    with _watched(counted):
        run()
    return flops


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)


def _is_view(function: Any) -> bool:
    returned = function._schema.returns
    return bool(returned) and returned[0].alias_info is not None and not returned[0].alias_info.is_write


def _watched(seen: Callable[[Any, Any, Any, Any], None]) -> Any:
    """Tell `seen` of every operator called in a `with` block: its arguments and what it returned."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watched(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            seen(function, args, kwargs or {}, result)
            return result

    return Watched()  # type: ignore[no-untyped-call]

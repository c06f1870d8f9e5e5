"""PyTorch modules whose weights are arguments: how a reference calls a model that was written as a class.

Tasks that `arena import` made use it. Importing this module runs none of their code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

_DRAWS = frozenset(
    {"normal_", "uniform_", "trunc_normal_", "bernoulli_", "exponential_", "cauchy_", "log_normal_", "orthogonal_"}
    | {"kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_", "sparse_"}
)
"""methods of tensors and functions of torch.nn.init that draw in place"""
_built: dict[tuple[Any, ...], tuple[torch.nn.Module, dict[str, torch.Tensor]]] = {}


class _NoDraws(TorchFunctionMode):
    """Leaves weights undrawn while a module is built: others take their place, and drawing them takes seconds."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call `func`, unless it draws in place."""
        given = kwargs or {}
        if getattr(func, "__name__", "") in _DRAWS:
            return args[0] if args else given["tensor"]
        return func(*args, **given)


def build_module(make: Callable[..., torch.nn.Module], sizes: tuple[int, ...], device: Any) -> torch.nn.Module:
    """Return `make(*sizes)` in training mode, with parameters without memory and buffers on `device`.

    A normalization over the batch keeps no running statistics: in training mode none reaches an output. Dispatch modes
    that are active, such as one that rounds results, do not see the construction.
    """
    with _disable_current_modes(), _NoDraws(), torch.device(device):
        module = make(*sizes)
    for part in module.modules():
        for name, weight in part._parameters.items():
            if weight is not None:
                part._parameters[name] = torch.nn.Parameter(weight.to("meta"), weight.requires_grad)
        if isinstance(part, torch.nn.modules.batchnorm._NormBase) and part.track_running_stats:
            part.track_running_stats = False
            part.running_mean = part.running_var = part.num_batches_tracked = None
    return module


def call_module(
    make: Callable[..., torch.nn.Module],
    sizes: tuple[int, ...],
    inputs: Sequence[Any],
    weights: Mapping[str, torch.Tensor],
    zeros: Sequence[str] = (),
) -> Any:
    """Return what the module `make(*sizes)` computes from `inputs`, with `weights` as its parameters, `zeros` being 0.

    The module is built once for each tuple of sizes, device and dtype. Floating-point buffers take the dtype of the
    first floating-point tensor among inputs and weights.
    """
    tensors = [value for value in (*inputs, *weights.values()) if isinstance(value, torch.Tensor)]
    dtype = next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), torch.float32)
    key = (make, sizes, tensors[0].device, dtype)
    if key not in _built:
        made = build_module(make, sizes, tensors[0].device).to(dtype)
        shapes = {name: made.get_parameter(name).shape for name in zeros}
        with _disable_current_modes():
            absent = {name: torch.zeros(s, dtype=dtype, device=tensors[0].device) for name, s in shapes.items()}
        _built[key] = made, absent
    module, absent = _built[key]
    return torch.func.functional_call(module, {**absent, **weights}, tuple(inputs))


def flat(results: Any) -> Any:
    """Return the results with numbers as tensors of one element: a buffer has at least one dimension."""
    if isinstance(results, (tuple, list)):
        return tuple(flat(result) for result in results)
    return results.reshape(1) if isinstance(results, torch.Tensor) and not results.ndim else results

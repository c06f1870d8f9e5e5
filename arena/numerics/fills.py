"""Inputs: every `fill` of the task format, for many sets of arguments at once.

Each filler returns a tensor of shape (count, *shape): `count` independent draws from one generator, on its device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from arena.errors import UsageError
from arena.model.expression import Expression
from arena.model.task import FLOATING, Arguments, Fill, Tensor
from arena.numerics.dtypes import torch_dtype

if TYPE_CHECKING:
    import torch

_CHUNK = 1 << 26
Values = dict[str, float]


def draw(tensor: Tensor, arguments: Arguments, count: int, generator: torch.Generator) -> torch.Tensor:
    """`count` draws of one input: shape (count, *tensor.shape), the input's dtype, contiguous."""
    fill = tensor.spec.fill
    assert fill is not None
    if fill.kind not in _FILLS:
        raise UsageError(f"fill {fill.kind!r} of {tensor.name} has no filler here")
    drawn = _FILLS[fill.kind](_values(fill, arguments), tensor, count, generator)
    return drawn.to(torch_dtype(tensor.dtype))


def zeros_will_do(tensor: Tensor, arguments: Arguments) -> bool:
    """Whether memory full of zeros is a valid input: floating-point numbers, or integers of which 0 is one."""
    fill = tensor.spec.fill
    assert fill is not None
    if tensor.dtype in FLOATING:
        return True
    values = _values(fill, arguments)
    return fill.kind == "integers" and values["low"] <= 0 < values["high"]


def _values(fill: Fill, arguments: Arguments) -> Values:
    """What the fill is told, worked out for the case."""
    told = fill.arguments.items()
    return {name: float(text.value(arguments.names)) for name, text in told if isinstance(text, Expression)}


def is_custom(fill: Fill | None) -> bool:
    """Whether `make_inputs` of reference.py fills it."""
    return fill is not None and fill.kind == "custom"


def _normal(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    out = _empty(tensor, count, generator)
    out.normal_(values.get("mean", 0.0), values.get("std", 1.0), generator=generator)
    assert isinstance(out, torch.Tensor)
    return out


def _uniform(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    return _empty(tensor, count, generator).uniform_(values["low"], values["high"], generator=generator)


def _integers(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Integers in [low, high)."""
    import torch

    low, high = int(values["low"]), int(values["high"])
    if low >= high:
        raise UsageError(f"fill of {tensor.name}: no integer in [{low}, {high})")
    dtype = torch.int32 if low >= -(2**31) and high < 2**31 else torch.int64
    return torch.randint(low, high, (count, *tensor.shape), generator=generator, device=generator.device, dtype=dtype)


def _bernoulli(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    return _rand(count, tensor.shape, generator) < values["value"]


def _constant(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    dtype = torch_dtype(tensor.dtype)
    return torch.full((count, *tensor.shape), values["value"], dtype=dtype, device=generator.device)


def _permutation(_: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """A permutation of 0 … n-1 along the last dimension."""
    return _rand(count, tensor.shape, generator).argsort(dim=-1)


def _one_hot(_: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    hot = torch.randint(
        0, tensor.shape[-1], (count, *tensor.shape[:-1], 1), generator=generator, device=generator.device
    )
    return _empty(tensor, count, generator).zero_().scatter_(-1, hot, 1)


def _offsets(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Ascending offsets from 0 to `total`, each part at least `least` long: `cu_seqlens` of a ragged batch."""
    import torch

    parts = tensor.shape[-1] - 1
    total, least = int(values["total"]), int(values.get("least", 0))
    spare = total - parts * least
    if parts < 1 or spare < 0:
        raise UsageError(f"fill of {tensor.name}: {total} cannot be cut into {parts} parts of at least {least}")
    cuts = torch.randint(
        0, spare + 1, (count, *tensor.shape[:-1], parts - 1), generator=generator, device=generator.device
    )
    ends = torch.full_like(cuts[..., :1], spare) if parts > 1 else cuts.new_full((count, *tensor.shape[:-1], 1), spare)
    offsets = torch.cat([torch.zeros_like(ends), cuts.sort(dim=-1).values, ends], dim=-1)
    return offsets + least * torch.arange(parts + 1, device=generator.device)


def _distinct(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Distinct integers below a bound, over the whole tensor: slots, or pages of a block table."""
    bound = int(values["below"] if "below" in values else values["pages"])
    if tensor.numel > bound:
        raise UsageError(f"fill of {tensor.name}: {tensor.numel} distinct integers below {bound} do not exist")
    order = _rand(count, (bound,), generator).argsort(dim=-1)
    return order[:, : tensor.numel].reshape(count, *tensor.shape)


def _addresses(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Byte offsets of rows in another tensor, in random order; the host turns them into addresses."""
    return _permutation({}, tensor, count, generator) * int(values["row_bytes"])


_FILLS: dict[str, Callable[[Values, Tensor, int, torch.Generator], torch.Tensor]] = {
    "normal": _normal,
    "uniform": _uniform,
    "integers": _integers,
    "bernoulli": _bernoulli,
    "constant": _constant,
    "permutation": _permutation,
    "one_hot": _one_hot,
    "offsets": _offsets,
    "page_table": _distinct,
    "distinct": _distinct,
    "addresses": _addresses,
}


def _empty(tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Uninitialised draws, in the input's own dtype where torch can fill it, else in float32."""
    import torch

    fillable = tensor.dtype in ("float64", "float32", "float16", "bfloat16")
    dtype = torch_dtype(tensor.dtype) if fillable else torch.float32
    return torch.empty((count, *tensor.shape), dtype=dtype, device=generator.device)


def _rand(count: int, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Uniform keys in [0, 1): float64 where float32 would give ties that bias an order."""
    import torch

    dtype = torch.float64 if math.prod(shape) > 1 << 12 else torch.float32
    return torch.rand((count, *shape), generator=generator, device=generator.device, dtype=dtype)

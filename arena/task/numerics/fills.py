"""Inputs: every `fill` of the task format, for many sets of arguments at once.

Each filler returns a tensor of shape (count, *shape): `count` independent draws from one generator, on its device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena.errors import UsageError
from arena.semantics.uneven import make_uneven
from arena.task.definition import FLOATING, Arguments, Fill, Tensor
from arena.task.expression import Expression
from arena.task.fp8 import FNUZ, OCP
from arena.task.numerics.dtypes import torch_dtype

if TYPE_CHECKING:
    import torch

_PIECE = 1 << 28
_FLOATS = frozenset({"float64", "float32", "float16", "bfloat16"})
_INTEGERS = frozenset({"int64", "int32", "int16", "int8", "uint8"})
Values = dict[str, float]


def draw(
    tensor: Tensor, arguments: Arguments, count: int, generator: torch.Generator, *, uneven: bool = False
) -> torch.Tensor:
    """`count` draws of one input: shape (count, *tensor.shape), the input's dtype, contiguous.

    `uneven`: normal values get heavy tails and dominant positions in most sets (`arena.semantics.uneven`).
    """
    fill = tensor.spec.fill
    assert fill is not None
    values = _values(fill, arguments)
    if fill.kind in _EACH:
        drawn = _each(_EACH[fill.kind], values, tensor, count, generator)
        if uneven and fill.kind == "normal" and tensor.dtype in _FLOATS:
            make_uneven(drawn, generator, mean=values.get("mean", 0.0), std=values.get("std", 1.0))
        return drawn
    if fill.kind not in _FILLS:
        raise UsageError(f"fill {fill.kind!r} of {tensor.name} has no filler here")
    return _FILLS[fill.kind](values, tensor, count, generator).to(torch_dtype(tensor.dtype))


def zeros_will_do(tensor: Tensor, arguments: Arguments) -> bool:
    """Return whether memory full of zeros is a valid input: floating-point numbers, or integers of which 0 is one."""
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
    """Return whether `make_inputs` of reference.py fills it."""
    return fill is not None and fill.kind == "custom"


@dataclass(frozen=True)
class _Each:
    """A fill in which every element is drawn by itself, and so in place."""

    draw: Callable[[Values, Tensor, torch.Tensor, torch.Generator], object]
    """overwrites the tensor it is given"""
    dtypes: frozenset[str]
    """those it can overwrite"""
    elsewhere: str
    """the dtype in which it draws for all others"""


def _each(fill: _Each, values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """In place where PyTorch can; else by pieces: all sets of a tensor of bytes, drawn as float32, fill a GPU."""
    import torch

    dtype, device = torch_dtype(tensor.dtype), generator.device
    out = torch.empty((count, *tensor.shape), dtype=dtype, device=device)
    if tensor.dtype in fill.dtypes:
        fill.draw(values, tensor, out, generator)
        return out
    for piece in torch.split(out.view(-1), _PIECE):
        drawn = torch.empty(piece.shape, dtype=torch_dtype(fill.elsewhere), device=device)
        fill.draw(values, tensor, drawn, generator)
        if tensor.dtype in (OCP, FNUZ):  # which have no infinity: what is too large would be NaN
            most = int(torch.finfo(dtype).max)
            drawn.clamp_(-most, most)
        piece.copy_(drawn)
    return out


def _normal(values: Values, _: Tensor, out: torch.Tensor, generator: torch.Generator) -> None:
    _independent(out, generator, values.get("mean", 0.0), values.get("std", 1.0))


def _normal_rows(values: Values, _: Tensor, out: torch.Tensor, generator: torch.Generator) -> None:
    """Normal numbers; every row has a standard deviation of its own, log-uniform in [low, high]."""
    import torch

    low, high = values["low"], values["high"]
    rows = torch.rand((*out.shape[:-1], 1), generator=generator, device=out.device)
    _independent(out, generator).mul_((low * (high / low) ** rows).to(out.dtype))


def _sparse(values: Values, _: Tensor, out: torch.Tensor, generator: torch.Generator) -> None:
    """Normal numbers with the given probability, else 0."""
    import torch

    kept = torch.empty_like(out, dtype=torch.bool).bernoulli_(values["value"], generator=generator)
    _independent(out, generator).mul_(kept)


def _independent(out: torch.Tensor, generator: torch.Generator, mean: float = 0.0, std: float = 1.0) -> torch.Tensor:
    """Overwrite with independent normal numbers, and return them."""
    if out.is_cuda:
        from arena.task.numerics import normal_kernel

        if normal_kernel.can_fill(out):
            normal_kernel.fill_normal(out, mean, std, generator)
            return out
    return out.normal_(mean, std, generator=generator)


def _uniform(values: Values, _: Tensor, out: torch.Tensor, generator: torch.Generator) -> None:
    # By halves, which are exact: PyTorch refuses a range of float16 that is wider than its greatest number.
    out.uniform_(values["low"] / 2, values["high"] / 2, generator=generator).mul_(2)


def _integers(values: Values, tensor: Tensor, out: torch.Tensor, generator: torch.Generator) -> None:
    """Integers in [low, high)."""
    low, high = int(values["low"]), int(values["high"])
    if low >= high:
        raise UsageError(f"fill of {tensor.name}: no integer in [{low}, {high})")
    out.random_(low, high, generator=generator)


def _bernoulli(values: Values, _: Tensor, out: torch.Tensor, generator: torch.Generator) -> None:
    out.bernoulli_(values["value"], generator=generator)


def _constant(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    dtype = torch_dtype(tensor.dtype)
    return torch.full((count, *tensor.shape), values["value"], dtype=dtype, device=generator.device)


def _equal_rows(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Each row holds one normal number of its own, again and again."""
    import torch

    rows = torch.empty((count, *tensor.shape[:-1], 1), device=generator.device)
    rows = rows.normal_(values["mean"], values["std"], generator=generator).to(torch_dtype(tensor.dtype))
    return rows.expand(count, *tensor.shape).contiguous()


def _peaks(values: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Small normal numbers, over which one number of each row towers: all others together may weigh as much."""
    import torch

    rows = torch.empty((count, *tensor.shape), device=generator.device)
    _independent(rows, generator, 0.0, values["std"])
    peak = torch.randint(0, tensor.shape[-1], (*rows.shape[:-1], 1), generator=generator, device=generator.device)
    return rows.scatter_add_(-1, peak, torch.full_like(peak, values["mean"], dtype=rows.dtype))


def _permutation(_: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """A permutation of 0 … n-1 along the last dimension."""
    return _rand(count, tensor.shape, generator).argsort(dim=-1)


def _one_hot(_: Values, tensor: Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    hot = torch.randint(
        0, tensor.shape[-1], (count, *tensor.shape[:-1], 1), generator=generator, device=generator.device
    )
    return torch.zeros((count, *tensor.shape), dtype=torch.int8, device=generator.device).scatter_(-1, hot, 1)


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


_EACH = {
    "normal": _Each(_normal, _FLOATS, "float32"),
    "normal_even": _Each(_normal, _FLOATS, "float32"),
    "normal_rows": _Each(_normal_rows, _FLOATS, "float32"),
    "sparse": _Each(_sparse, _FLOATS, "float32"),
    "uniform": _Each(_uniform, _FLOATS, "float32"),
    "integers": _Each(_integers, _INTEGERS, "int64"),
    "bernoulli": _Each(_bernoulli, _FLOATS | _INTEGERS | {"bool"}, "float32"),
}
_FILLS: dict[str, Callable[[Values, Tensor, int, torch.Generator], torch.Tensor]] = {
    "constant": _constant,
    "equal_rows": _equal_rows,
    "peaks": _peaks,
    "permutation": _permutation,
    "one_hot": _one_hot,
    "offsets": _offsets,
    "page_table": _distinct,
    "distinct": _distinct,
    "addresses": _addresses,
}


def _rand(count: int, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Uniform keys in [0, 1): float64 where float32 would give ties that bias an order."""
    import torch

    dtype = torch.float64 if math.prod(shape) > 1 << 12 else torch.float32
    return torch.rand((count, *shape), generator=generator, device=generator.device, dtype=dtype)

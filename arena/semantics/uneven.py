"""Uneven draws: normal data with heavy tails, dominant positions and offsets, so that every part of an input counts.

With independent elements of one scale every average is near its expectation, and a kernel that reads a fraction of a
row, forgets the running maximum or rounds coarsely is right within the tolerance. Here a few unpredictable positions
decide the result. Used by the fill `normal` and by `make_inputs` of references.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_LEAST_POSITIONS = 4
_LEAST_LINE = 32
"""elements of a line that may have a spike of its own"""
_LEAST_SPIKE, _GREATEST_SPIKE = 4.0, 32.0
_TILE = 16
_LEAST_GAIN, _GREATEST_GAIN = 4.0, 32.0
"""factor of a tile: in float16 products of several must not overflow, and the exponential of a score of some thousand,
rounded in float32, is off by more than the tolerance"""
_SPREAD = 0.75
_OFFSET = 1.0
_PLAIN = 0.25
"""probability with which a set stays as it is"""


def make_uneven(values: torch.Tensor, generator: torch.Generator, *, mean: float = 0.0, std: float = 1.0) -> None:
    """Change about three quarters of the sets of `values` in place, each set by its own draw, all by one pattern.

    The pattern is one of: an element of each row `_LEAST_SPIKE` to `_GREATEST_SPIKE` standard deviations from the mean;
    a tile of 16 positions along one dimension, at its end, its beginning or anywhere, or everything, 4 to 32 times as
    large;
    a log-normal deviation for each position of one dimension; an offset for each row.

    Args:
        values: (count, *shape), floating, contiguous: `count` sets of independent normal values.
        generator: source of the choices, on the device of `values`.
        mean: mean of the values.
        std: their standard deviation.
    """
    import torch

    if values.ndim < 2 or values.numel() == 0:
        return
    dimensions = [d for d in range(1, values.ndim) if values.shape[d] >= _LEAST_POSITIONS]
    if not dimensions:
        return
    pattern, dimension = torch.rand(2, generator=generator, device=values.device).tolist()
    chosen = _chosen(values, generator)
    change = _PATTERNS[int(pattern * len(_PATTERNS))]
    change(values, dimensions[int(dimension * len(dimensions))], chosen, generator, mean, std)


Pattern = Callable[["torch.Tensor", int, "torch.Tensor", "torch.Generator", float, float], None]


def _chosen(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Which sets are changed: (count, 1, …, 1), bool."""
    import torch

    shape = (values.shape[0], *(1,) * (values.ndim - 1))
    return torch.rand(shape, generator=generator, device=values.device) >= _PLAIN


def _spikes(
    values: torch.Tensor, dimension: int, chosen: torch.Tensor, generator: torch.Generator, mean: float, std: float
) -> None:
    """One element along `dimension`, at a place of its own for each line of elements, is far from the mean."""
    import torch

    if values.shape[dimension] < _LEAST_LINE:
        _by_position(values, dimension, chosen, generator, mean, std)
        return
    shape = list(values.shape)
    shape[dimension] = 1
    chance: dict[str, Any] = {"generator": generator, "device": values.device}
    places = torch.randint(0, values.shape[dimension], shape, **chance)
    heights = _LEAST_SPIKE * (_GREATEST_SPIKE / _LEAST_SPIKE) ** torch.rand(shape, **chance)
    signs = torch.rand(shape, **chance).round() * 2 - 1
    spikes = (mean + std * signs * heights).to(values.dtype)
    values.scatter_(dimension, places, torch.where(chosen, spikes, values.gather(dimension, places)))


def _tile(
    values: torch.Tensor, dimension: int, chosen: torch.Tensor, generator: torch.Generator, mean: float, std: float
) -> None:
    """A tile of positions has a greater deviation: at the end, at the beginning, anywhere, or, in a quarter, all."""
    import torch

    count = values.shape[dimension]
    width = max(1, min(_TILE, count // 4))
    chance: dict[str, Any] = {"generator": generator, "device": values.device}
    where, anywhere = torch.rand(chosen.shape, **chance), torch.rand(chosen.shape, **chance)
    share = torch.where(where < 0.375, 1.0, torch.where(where < 0.625, 0.0, anywhere))
    first, positions = (share * (count - width)).round(), _positions(values, dimension)
    inside = (((positions >= first) & (positions < first + width)) | (where >= 0.75)) & chosen
    gains = _LEAST_GAIN * (_GREATEST_GAIN / _LEAST_GAIN) ** torch.rand(chosen.shape, **chance)
    _scale(values, torch.where(inside, gains, 1.0), mean)


def _by_position(
    values: torch.Tensor, dimension: int, chosen: torch.Tensor, generator: torch.Generator, mean: float, std: float
) -> None:
    """Every position has a deviation of its own, log-normal."""
    import torch

    shape = [1] * values.ndim
    shape[0], shape[dimension] = values.shape[0], values.shape[dimension]
    logarithms = _SPREAD * torch.randn(shape, generator=generator, device=values.device)
    _scale(values, torch.where(chosen, logarithms.exp(), 1.0), mean)


def _offsets(
    values: torch.Tensor, dimension: int, chosen: torch.Tensor, generator: torch.Generator, mean: float, std: float
) -> None:
    """All elements along `dimension` share an offset: they are correlated, and their mean is not that of the input."""
    import torch

    shape = list(values.shape)
    shape[dimension] = 1
    offsets = torch.randn(shape, generator=generator, device=values.device) * (_OFFSET * std)
    values.add_(torch.where(chosen, offsets, 0.0).to(values.dtype))


def _positions(values: torch.Tensor, dimension: int) -> torch.Tensor:
    import torch

    shape = [1] * values.ndim
    shape[dimension] = values.shape[dimension]
    return torch.arange(values.shape[dimension], device=values.device).view(shape)


def _scale(values: torch.Tensor, factors: torch.Tensor, mean: float) -> None:
    """Multiply deviations from the mean."""
    factors = factors.to(values.dtype)
    if mean:
        values.sub_(mean).mul_(factors).add_(mean)
    else:
        values.mul_(factors)


_PATTERNS: tuple[Pattern, ...] = (_spikes, _tile, _by_position, _offsets)

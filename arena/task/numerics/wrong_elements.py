"""Describe the wrong elements of an output: how many, where, and the worst. For outputs that have failed already."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from arena.task.definition import OutputComparison, Tolerance
from arena.task.numerics.comparison import close_errors, code_distance
from arena.task.numerics.dtypes import bounds, torch_dtype

if TYPE_CHECKING:
    import torch

_MIN_DENSITY = 0.5
"""a pattern is named if more than this share of the elements in it is wrong"""


def describe_wrong(
    actual: torch.Tensor,
    expected: torch.Tensor,
    tolerance: Tolerance,
    dtype: str,
    leeway: float = 1.0,
    arithmetic_error: float = 0.0,
) -> str:
    """Return `3 of 64 elements wrong, WHERE; worst at [1, 2]: got 0.5, expected 0.25 ± 0.001 (250 × tolerance)`.

    Args:
        actual: the output, of the output's dtype.
        expected: what the reference gave, of the same shape and on the same device.
        tolerance: how the two are compared; not `decision`.
        dtype: the declared dtype of the output.
        leeway: multiple of the tolerance that is accepted.
        arithmetic_error: see `arena.task.numerics.dtypes.bounds`.
    """
    import torch

    wanted = expected
    if tolerance.comparison is OutputComparison.CLOSE:
        errors, allowed = close_errors(actual, expected, *bounds(tolerance, dtype, arithmetic_error))
        wrong, suffix = errors > leeway, ""
    elif tolerance.comparison is OutputComparison.QUANTIZED:
        errors = code_distance(actual, expected.to(torch_dtype(dtype))).double()
        beyond = errors > 1
        wrong, suffix = (beyond, " ± 1 code") if bool(beyond.any()) else (errors > 0, ", one code off")
    else:
        wanted = expected.to(actual.dtype)
        wrong, suffix = (actual != wanted) & ~(actual.isnan() & wanted.isnan()), " exactly"
        errors = (actual.double() - wanted.double()).abs().nan_to_num(torch.inf, posinf=torch.inf)
    worst = int(torch.where(wrong, errors, -1.0).argmax())
    values = f"got {_value(actual, worst)}, expected {_value(wanted, worst)}"
    if not suffix:
        bound, ratio = float(allowed.expand_as(errors).flatten()[worst]), float(errors.flatten()[worst]) / leeway
        suffix = f" ± {bound * leeway:.3g} ({ratio:.3g} × tolerance)"
    return f"{locate(wrong, 'wrong')}; worst at {_index(worst, actual.shape)}: {values}{suffix}"


def describe_regret(regret: torch.Tensor, allowed: float) -> str:
    """Return which choices of a `decision` output are worse than the best by more than is allowed."""
    import torch

    regret = torch.where(regret.isnan(), torch.inf, regret.double())
    worst = int(regret.argmax())
    where = _index(worst, regret.shape)
    wrong = locate(regret > allowed, "wrong")
    return f"{wrong}; worst at {where}: regret {regret.flatten()[worst].item():.6g}, allowed {allowed:.3g}"


def locate(mask: torch.Tensor, what: str) -> str:
    """Return `4 of 64 elements WHAT`, the first and the last index, and the pattern, if there is any."""
    total, count = mask.numel(), int(mask.sum())
    if count == total and total > 1:
        return f"all {total} elements {what}"
    said = f"{count} of {total} elements {what}"
    if count < 2:
        return said
    flags = mask.flatten().byte()
    first, last = int(flags.argmax()), total - 1 - int(flags.flip(0).argmax())
    pattern = ", ".join(_patterns(mask, count))
    return f"{said}, {_index(first, mask.shape)} to {_index(last, mask.shape)}" + (f": {pattern}" if pattern else "")


def _patterns(mask: torch.Tensor, count: int) -> list[str]:
    """Along each axis that is not wrong throughout: which indices are wrong, where the others are right."""
    axes = range(mask.ndim)
    flags = [mask.any(dim=[axis for axis in axes if axis != own]) if mask.ndim > 1 else mask for own in axes]
    indices = [axis.nonzero().flatten() for axis in flags]
    if count <= _MIN_DENSITY * prod(len(found) for found in indices):
        return []
    named = (_pattern(found, mask.shape[axis], axis, mask.ndim) for axis, found in enumerate(indices))
    return [name for name in named if name]


def _pattern(indices: torch.Tensor, size: int, axis: int, ndim: int) -> str:
    """Name the wrong `indices` of `size` along one axis; empty if they are all, or have no order."""
    unit, along = {1: "element", 2: ("row", "column")[axis % 2]}.get(ndim, "index"), ""
    if ndim > 2:
        along = f" along axis {axis}"
    count, first, last = len(indices), int(indices[0]), int(indices[-1])
    if count == size:
        return ""
    if count == last - first + 1:
        if last == size - 1:
            return f"from {unit} {first} of {size} on{along}"
        return f"only {unit} {first}{along}" if count == 1 else f"{unit} {first} to {last} of {size}{along}"
    steps = indices.diff()
    step = int(steps[0])
    if count > 2 and bool((steps == step).all()):
        return f"every {_ordinal(step)} {unit} from {first} to {last}{along}"
    if ndim > 1 and count <= size // 2:
        return f"{count} of {size} {'indices' if unit == 'index' else unit + 's'}{along}"
    return ""


def _value(tensor: torch.Tensor, flat: int) -> str:
    value = tensor.flatten()[flat].item()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


def _index(flat: int, shape: torch.Size) -> str:
    import torch

    return str([int(place) for place in torch.unravel_index(torch.tensor(flat), shape)])

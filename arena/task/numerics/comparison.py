"""Is an output right? Errors are measured against the reference's own scale, and a ratio above 1 fails.

That scale is the root mean square of the whole tensor, or of the element's row or column where these are larger: the
first rows of causal attention average over few tokens, are several times as large as the rest, and so are their
rounding errors. Some columns of a product have larger weights. Where both are large, the scale is by as much larger.

Non-finite values are never a wildcard: NaN must meet NaN and an infinity the same infinity, in place. What the output's
dtype cannot hold becomes an infinity. Close to that limit either side of it is right, as far as the tolerance goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from arena.task.definition import OutputComparison, Tolerance
from arena.task.numerics.dtypes import bounds, torch_dtype

if TYPE_CHECKING:
    import torch

_QUANTIZED_FRACTION = 0.01
_QUANTIZED_FEW = 6
_QUANTIZED_OF_FEW = 16
_LEAST_REGRET = 1e-6
MOST_ARITHMETIC_ERROR = 2.0**-4
"""more than this says that inputs happened to cancel, not what a kernel may do"""
MOST_OPERATORS_ERROR = 1.0
"""the same where every operator's result is rounded: in rare draws a softmax of few bfloat16 scores tells nothing"""


def default_tolerance(dtype: str) -> Tolerance:
    """`close` for floating outputs, `exact` for all others."""
    return Tolerance(OutputComparison.CLOSE if dtype.startswith(("float", "bfloat")) else OutputComparison.EXACT)


def allowed_regret(tolerance: Tolerance) -> float:
    """How much worse than the best a decision may be, in the unit of the task's `regret`."""
    return _LEAST_REGRET if tolerance.atol is None else tolerance.atol


def error_ratio(
    actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance, dtype: str, arithmetic_error: float = 0.0
) -> torch.Tensor:
    """Worst error over allowed error, a float64 scalar on the tensors' device; above 1 means wrong.

    `actual` has the output's dtype, `expected` what the reference gave (float64, for `close`); `arithmetic_error`: see
    `arena.task.numerics.dtypes.bounds`.
    """
    import torch

    if expected.shape != actual.shape:
        raise ValueError(f"the reference gives shape {tuple(expected.shape)}, declared is {tuple(actual.shape)}")
    if actual.numel() == 0:
        return torch.zeros((), dtype=torch.float64, device=actual.device)
    if tolerance.comparison is OutputComparison.EXACT:
        return _exact(actual, expected.to(actual.dtype))
    if tolerance.comparison is OutputComparison.QUANTIZED:
        return _quantized(actual, expected.to(torch_dtype(dtype)))
    allowed = bounds(tolerance, dtype, arithmetic_error)
    worst = _worst_of_finite(actual, expected, *allowed)
    return close_errors(actual, expected, *allowed)[0].max() if worst.isnan() else worst


def _worst_of_finite(
    actual: torch.Tensor, expected: torch.Tensor, atol: float, rtol: float, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Return the greatest of `close_errors` in a quarter of its memory traffic.

    NaN where it says nothing: where a value is not finite or leaves the output's dtype, in the reference or in the
    output, or an output is 0 throughout. `dtype`: the output's, where that of `actual` is another.
    """
    import torch

    wanted = expected.to(torch.float64)
    least, most = wanted.aminmax()
    fits = torch.maximum(most, -least) <= torch.finfo(dtype or actual.dtype).max
    whole = torch.linalg.vector_norm(wanted).square() / wanted.numel()
    if wanted.ndim > 1:
        count, length = wanted.shape[-2:]
        rows = torch.linalg.vector_norm(wanted, dim=-1, keepdim=True).square() / length
        columns = torch.linalg.vector_norm(wanted, dim=-2, keepdim=True).square() / count
        allowed = _scale(whole, rows, columns, rows.mean(-2, keepdim=True)).mul_(atol)
    else:
        allowed = (atol * whole.sqrt()).repeat(wanted.shape)
    allowed.add_(wanted.abs(), alpha=rtol).add_(wanted != 0, alpha=_smallest(actual.dtype))
    got = actual.to(torch.float64) if actual.element_size() == 1 else actual
    worst = torch.sub(wanted, got).abs_().div_(allowed).max()
    return torch.where(fits & worst.isfinite(), worst, torch.nan)


def _scale(whole: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, matrices: torch.Tensor) -> torch.Tensor:
    """Return the scale of each element of (…, M, N), from mean squares that are broadcast to that shape.

    An element of a product is as large as its row is beside its matrix, times its column beside it.
    """
    import torch

    larger = (columns / torch.where(matrices > 0, matrices, 1.0)).clamp(min=1.0).sqrt()
    return torch.maximum(rows.sqrt() * larger, torch.maximum(whole, columns).sqrt())


def _exact(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    import torch

    same = actual == expected
    if actual.is_floating_point():
        same = same | (actual.isnan() & expected.isnan())
    return torch.where(same.all(), 0.0, torch.inf).to(torch.float64)


def close_errors(
    actual: torch.Tensor, expected: torch.Tensor, atol: float, rtol: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return error over allowed error, and the allowed error, element by element."""
    import torch

    got, wanted = actual.to(torch.float64), expected.to(torch.float64)
    finite, held = wanted.isfinite(), _overflowed(wanted, actual.dtype).isfinite()
    squares = torch.where(held, wanted, 0.0).square()
    whole = squares.sum() / held.sum().clamp(min=1)
    scale = whole.sqrt()
    if wanted.ndim > 1:
        axes = (-1, -2, (-1, -2))
        scale = _scale(whole, *(squares.sum(a, keepdim=True) / held.sum(a, keepdim=True).clamp(min=1) for a in axes))
    allowed = atol * scale + rtol * wanted.abs() + _smallest(actual.dtype) * (wanted != 0)
    overflowed = got.sign() * wanted.abs().clamp(min=_overflow(actual.dtype))
    difference = (torch.where(got.isinf(), overflowed, got) - wanted).abs()
    ratio = torch.where(difference == 0, 0.0, difference / allowed)
    agree = (got == wanted) | (got.isnan() & wanted.isnan())
    ratio = torch.where(finite, ratio, torch.where(agree, 0.0, torch.inf))
    return torch.where(ratio.isnan(), torch.inf, ratio), allowed


def relative_error(
    actual: torch.Tensor,
    expected: torch.Tensor,
    most: float = MOST_ARITHMETIC_ERROR,
    dtype: torch.dtype | None = None,
) -> float:
    """Return the greatest error over scale + |expected| where both are finite, at most `most`.

    `dtype`: of the output; what it cannot hold has no error and no part in the scale, as in `close_errors`.
    """
    if not expected.numel():
        return 0.0
    wanted = expected.to(actual.device)
    worst = _worst_of_finite(actual, wanted, 1.0, 1.0, dtype)
    if worst.isnan():
        held = wanted if dtype is None else _overflowed(wanted, dtype)
        worst = close_errors(actual, held, 1.0, 1.0)[0].nan_to_num(posinf=0.0).max()
    return min(float(worst), most)


def _smallest(dtype: torch.dtype) -> float:
    """The smallest number above 0 of a floating-point dtype: what rounding of even smaller ones may be off by."""
    import torch

    return torch.finfo(dtype).tiny * torch.finfo(dtype).eps


def _overflow(dtype: torch.dtype) -> float:
    """The least number that rounds to infinity: half a step above the greatest of a floating-point dtype."""
    import torch

    info = torch.finfo(dtype)
    return info.max / (1 - info.eps / 2) * (1 - info.eps / 4) if dtype != torch.float64 else torch.inf


def _overflowed(wanted: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The reference with what the output's dtype cannot hold turned into what rounding makes of it."""
    import torch

    if dtype in (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2):
        return wanted
    return torch.where(wanted.abs() < _overflow(dtype), wanted, wanted.sign() * torch.inf)


def _quantized(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """At most one code off, in at most 1 % of the elements; of fewer than 700 in six, but no more than one in sixteen.

    Values of 16 bits tie often (half of the largest is 63.5 steps of 127), and all ties of a row fall alike.
    """
    import torch

    steps = code_distance(actual, expected)
    off = (steps > 0).sum()
    count = actual.numel()
    allowed = max(1, min(_QUANTIZED_FEW, count // _QUANTIZED_OF_FEW), int(_QUANTIZED_FRACTION * count))
    ratio = off.to(torch.float64) / allowed
    return torch.where((steps > 1).any(), torch.inf, ratio)


def code_distance(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Return how many codes of their dtype lie between two tensors, element by element."""
    return (_codes(actual) - _codes(expected)).abs()


def _codes(values: torch.Tensor) -> torch.Tensor:
    """Integers in the order of the values, neighbours one apart; NaN is far from everything."""
    import torch

    if not values.is_floating_point():
        return values.to(torch.int64)
    bits = values.contiguous().view(torch.uint8).to(torch.int64)
    magnitude = bits & 0x7F
    code = torch.where(bits >= 0x80, -magnitude, magnitude)
    return torch.where(values.to(torch.float32).isnan(), 1 << 20, code)

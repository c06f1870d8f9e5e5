"""References with one operation in an unstable form: the same formula, but overflowing or cancelling in float32.

`arena tasks check` demands cases whose values show the difference (Higham, Accuracy and Stability of Numerical
Algorithms, 2002, chapter 1; Blanchard, Higham and Higham, Accurately computing the log-sum-exp and softmax, 2021).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from arena.task.numerics.arithmetic import UncompiledMode

Tensor = torch.Tensor


class UnstableForm(NamedTuple):
    """One operation of a reference: the name of its form, and the line of reference.py that asks for it."""

    form: str
    line: int


WORDS = {
    "softmax": "exp(x) / sum(exp(x)), without the maximum",
    "logsumexp": "log(sum(exp(x))), without the maximum",
    "softplus": "log(1 + exp(x)) for all x",
    "sigmoid": "exp(x) / (1 + exp(x))",
    "tanh": "(exp(2 x) - 1) / (exp(2 x) + 1)",
    "difference": "exp(a - b) as exp(a) * exp(-b)",
    "variance": "mean(x²) - mean(x)²",
    "square": "a sum of squares in float16",
    "cumprod": "exp(cumsum(log(x)))",
    "expm1": "exp(x) - 1",
    "log1p": "log(1 + x)",
    "accumulate": "sums of products kept in 16 bits",
}
"""each form, as the text of a message"""


def _softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    powers = x.exp()
    return powers / powers.sum(dim, keepdim=True)


def _log_softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    return x - x.exp().sum(dim, keepdim=True).log()


def _logsumexp(x: Tensor, dim: Sequence[int], keepdim: bool = False) -> Tensor:
    return x.exp().sum(list(dim), keepdim=keepdim).log()


def _logaddexp(x: Tensor, other: Tensor) -> Tensor:
    return (x.exp() + other.exp()).log()


def _softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    return (1 + (beta * x).exp()).log() / beta


def _sigmoid(x: Tensor) -> Tensor:
    return x.exp() / (1 + x.exp())


def _log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    return _sigmoid(x).log(), x.new_zeros(0)


def _silu(x: Tensor) -> Tensor:
    return x * _sigmoid(x)


def _tanh(x: Tensor) -> Tensor:
    return ((2 * x).exp() - 1) / ((2 * x).exp() + 1)


def _gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """Return the approximation by a tanh; the exact one has no other form."""
    inner = (2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)
    return x / 2 * (1 + _tanh(inner))


def _var(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


def _var_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    places = list(range(x.ndim)) if dim is None else list(dim)
    mean = x.mean(places, keepdim=keepdim)
    count = x.numel() / max(1, mean.numel())
    variance = (x.square().mean(places, keepdim=keepdim) - mean.square()).clamp(min=0.0)
    return variance * (count / max(count - (1 if correction is None else correction), 0.0)), mean


def _std(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _var(x, dim, correction=correction, keepdim=keepdim).sqrt()


def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    variance, mean = _var_mean(x, list(range(x.ndim - len(shape), x.ndim)), correction=0, keepdim=True)
    rstd = (variance + eps).rsqrt()
    y = (x - mean) * rstd
    y = y if weight is None else y * weight
    return y if bias is None else y + bias, mean, rstd


def _cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    return x.log().cumsum(dim).exp()


def _product(x: Tensor, y: Tensor, half: torch.dtype) -> Tensor:
    """X @ y whose sum is rounded after each step of a matrix instruction."""
    parts = zip(_single(x).split(_STEP, -1), _single(y).split(_STEP, -2 if y.ndim > 1 else 0), strict=True)
    total: Tensor | float = 0.0
    for left, right in parts:
        total = _single((total + left @ right).to(half))
    assert isinstance(total, Tensor)
    return total


_FORMS: dict[str, tuple[str, Callable[..., Any]]] = {
    "_softmax": ("softmax", _softmax),
    "_log_softmax": ("logsumexp", _log_softmax),
    "logsumexp": ("logsumexp", _logsumexp),
    "logaddexp": ("softplus", _logaddexp),
    "softplus": ("softplus", _softplus),
    "sigmoid": ("sigmoid", _sigmoid),
    "log_sigmoid_forward": ("sigmoid", _log_sigmoid),
    "silu": ("sigmoid", _silu),
    "tanh": ("tanh", _tanh),
    "gelu": ("tanh", _gelu),
    "var": ("variance", _var),
    "var_mean": ("variance", _var_mean),
    "std": ("variance", _std),
    "native_layer_norm": ("variance", _layer_norm),
    "cumprod": ("cumprod", _cumprod),
    "expm1": ("expm1", lambda x: x.exp() - 1),
    "log1p": ("log1p", lambda x: (1 + x).log()),
}
"""by operator of PyTorch"""
_MOVED = frozenset(
    {"view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "permute", "transpose", "t", "slice",
     "select", "as_strided", "clone", "neg", "_to_copy", "alias", "detach", "index", "unbind", "split"}
)  # fmt: skip
"""operators whose result has the elements of their first argument, in other places or with another sign"""
_MASKED = frozenset({"tril", "triu", "masked_fill", "where", "clamp", "clamp_min", "clamp_max", "minimum"})
"""operators whose result has the elements of one of their arguments, or others in their place"""
_CLOSE = 1e-3
_PRODUCTS = {"mm": 0, "bmm": 0, "mv": 0, "dot": 0, "addmm": 1, "baddbmm": 1, "addmv": 1}
"""operators that multiply matrices, with the place of the first factor; one before it is added"""
_STEP, _LONG = 16, 256
"""terms that a matrix instruction adds at once, and beyond which a sum is long: each step rounds it once more"""


class _Difference(NamedTuple):
    """A tensor that is a difference: `left - right`, up to masked elements. `of_mean`: right is a mean."""

    tensor: Tensor
    left: Tensor
    right: Tensor
    of_mean: bool


class UnstableMode(UncompiledMode):  # type: ignore[no-untyped-call]
    """Computes the chosen operation of a reference in its unstable form, in float32; `found` has all that it meets.

    Args:
        path: The reference's file.
        chosen: The operation; None leaves all as they are.
        halves: The dtypes of 16 bits among the inputs, in which a kernel could square or add.
    """

    def __init__(self, path: str, chosen: UnstableForm | None, halves: Sequence[torch.dtype]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._path, self._chosen, self._halves = path, chosen, halves
        self._float16 = torch.float16 in halves
        self._differences: dict[int, _Difference] = {}
        self._means: dict[int, Tensor] = {}
        self._squares: dict[int, tuple[Tensor, Tensor]] = {}
        self.found: dict[UnstableForm, None] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the operator, or compute its unstable form where it is the chosen one."""
        name = func.overloadpacket.__name__.rstrip("_")
        given = dict(kwargs or {})
        unstable = self._unstable(name, func, args, given)
        if unstable is not None:
            return args[0].copy_(unstable) if func._schema.is_mutable else unstable
        result = func(*args, **given)
        if isinstance(result, Tensor) and not func._schema.is_mutable:
            self._note(name, func, args, given, result)
        return result

    def _unstable(self, name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the result in the chosen form; None where this is another operation."""
        first = args[0] if args else None
        if not isinstance(first, Tensor) or not first.is_floating_point() or not first.numel():
            return None
        if name in _FORMS and not (name == "gelu" and kwargs.get("approximate", "none") != "tanh"):
            form, compute = _FORMS[name]
            return self._replace(form, lambda: compute(*map(_single, args), **kwargs), first.dtype)
        if name in _PRODUCTS:
            return self._short_sums(_PRODUCTS[name], args, kwargs)
        difference = self._differences.get(id(first))
        if name in ("exp", "exp2") and difference is not None:
            return self._replace("difference", partial(_split, first, difference, name), first.dtype)
        if name in ("sum", "mean") and id(first) in self._squares:
            return self._sum_of_squares(partial(func, **kwargs), self._squares[id(first)][1], args)
        if name == "linalg_vector_norm" and self._float16 and (args[1:] or (2,))[0] == 2:
            return self._replace("square", lambda: _norm_of_squares(*args, **kwargs), first.dtype)
        return None

    def _short_sums(self, place: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return a product in the chosen form; None where this is another operation, or its sums are not long.

        Means with weights, as of attention, are left as they are: their sums hardly grow.
        """
        left, right = args[place : place + 2]
        if kwargs or not self._halves or left.shape[-1] <= _LONG or not (_has_signs(left) and _has_signs(right)):
            return None
        added = _single(args[0]) if place else 0.0
        return self._replace("accumulate", lambda: added + _product(left, right, self._halves[0]), left.dtype)

    def _sum_of_squares(self, compute: Callable[..., Tensor], root: Tensor, args: Sequence[Any]) -> Any:
        """Return a sum or mean of squares in the chosen form; None where this is another operation."""
        difference, dtype = self._differences.get(id(root)), args[0].dtype
        if difference is not None and difference.of_mean:
            left, right = _single(difference.left), _single(difference.right)
            made = self._replace(
                "variance", lambda: compute(left.square(), *args[1:]) - compute(right.square(), *args[1:]), dtype
            )
            if made is not None:
                return made
        if self._float16:
            halves = root.to(torch.float16).square()
            return self._replace("square", lambda: compute(_single(halves), *args[1:]), dtype)
        return None

    def _replace(self, form: str, compute: Callable[[], Any], dtype: torch.dtype) -> Any:
        operation = UnstableForm(form, self._line())
        self.found[operation] = None
        if operation != self._chosen:
            return None
        made = compute()
        return made.to(dtype) if isinstance(made, Tensor) else tuple(one.to(dtype) for one in made)

    def _line(self) -> int:
        """Return the line of the reference that is being run; 0 where that is elsewhere."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename != self._path:
            frame = frame.f_back
        return 0 if frame is None else frame.f_lineno

    def _note(self, name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Tensor) -> None:
        """Keep what is known of the result: a mean, or a difference. Tensors are held, so that no id is used twice."""
        if name == "mean":
            self._means[id(result)] = result
        elif _is_square(name, args):
            self._squares[id(result)] = (result, args[0])
        elif name == "sub" and not kwargs and all(isinstance(one, Tensor) and one.ndim for one in args):
            left, right = (one.expand(result.shape) for one in args)
            of_mean = id(args[1]) in self._means
            self._differences[id(result)] = _Difference(result, left, right, of_mean)
        elif name in _MOVED | _MASKED | {"mul", "div"}:
            for place, one in enumerate(args):
                known = self._differences.get(id(one)) if isinstance(one, Tensor) else None
                if known is not None:
                    self._pass_on(name, func, args, kwargs, place, known, result)
                    break
            if args and id(args[0]) in self._means and name in _MOVED:
                self._means[id(result)] = result

    def _pass_on(
        self,
        name: str,
        func: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        place: int,
        known: _Difference,
        result: Tensor,
    ) -> None:
        if name in _MASKED:
            left, right = (side.expand(result.shape) for side in (known.left, known.right))
        elif place and name != "mul":
            return
        else:
            left, right = (func(*args[:place], side, *args[place + 1 :], **kwargs) for side in known[1:3])
        self._differences[id(result)] = _Difference(result, left, right, known.of_mean and name in _MOVED)


def _has_signs(x: Tensor) -> bool:
    return bool((x < 0).any())


def _is_square(name: str, args: Sequence[Any]) -> bool:
    return name == "pow" and isinstance(args[1], (int, float)) and args[1] == 2


def _single(value: Any) -> Any:
    return value.to(torch.float32) if isinstance(value, Tensor) and value.is_floating_point() else value


def _split(exponent: Tensor, difference: _Difference, name: str) -> Tensor:
    """Return exp(left) * exp(-right) where the exponent is still their difference, else its exponential."""
    power = torch.exp2 if name == "exp2" else torch.exp
    left, right = _single(difference.left.to(exponent.dtype)), _single(difference.right.to(exponent.dtype))
    found = left - right
    kept = (found - _single(exponent)).abs() <= _CLOSE * (1 + left.abs() + right.abs())
    return torch.where(kept, power(left) * power(-right), power(_single(exponent)))


def _norm_of_squares(x: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Tensor:
    squares = x.to(torch.float16).square().to(torch.float32)
    places = list(range(x.ndim)) if dim is None else dim
    return squares.sum(places, keepdim=keepdim).sqrt()

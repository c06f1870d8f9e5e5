"""One run of a problem on the meta device: shapes, how inputs are drawn, and what is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from arena.integrations.importers.problem import Reason, Skipped
from arena.task.definition import DTYPE_BYTES

Shape = tuple[int, ...]
_KEEP = frozenset({"float", "bool", "long", "int", "to", "contiguous", "cuda", "clone", "detach", "requires_grad_"})
_RESCALE = frozenset(
    {"mul", "div", "add", "sub", "__mul__", "__rmul__", "__truediv__", "__add__", "__sub__", "__rsub__"}
)
_COMPARE = frozenset({"gt", "lt", "ge", "le", "__gt__", "__lt__", "__ge__", "__le__"})
_RANDOM = frozenset(
    {"rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm", "bernoulli", "multinomial"}
    | {"normal_", "uniform_", "bernoulli_", "native_dropout", "dropout", "normal", "rrelu_with_noise"}
)
SELECTING = ("max", "min", "amax", "amin", "topk", "sort", "median", "clamp", "relu", "hardtanh", "threshold", "where")
"""operators with which a gradient does not reach every element that is read"""
_REDUCTIONS = frozenset(
    {"sum", "mean", "prod", "max", "min", "amax", "amin", "argmax", "argmin", "var", "std", "var_mean", "norm"}
    | {"linalg_vector_norm", "logsumexp", "any", "all"}
)
"""operators whose work is that of reading the first tensor, also where the result keeps its dimensions"""
_FREE = frozenset({"empty", "zeros", "ones", "full", "new_empty", "lift_fresh", "arange", "scalar_tensor"})


@dataclass(frozen=True)
class Drawn:
    """An input: `how` it is drawn, with bounds for integers. A scalar has no shape but a `value`."""

    name: str
    shape: Shape
    dtype: str
    how: str = "normal"
    bounds: tuple[int, int] = (0, 0)
    value: float | None = None


@dataclass(frozen=True)
class Term:
    """Operations of one operator: `factor` times the product of `dims`."""

    operator: str
    factor: int
    dims: Shape
    product: bool = False


@dataclass
class Trace:
    """One run at given sizes: inputs, weights, outputs, operations."""

    inputs: list[Drawn]
    weights: dict[str, Shape]
    outputs: list[tuple[Shape, str]] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    products: float = 0.0
    """floating-point operations of matrix products and convolutions, as PyTorch's counter has them"""
    largest: int = 0
    """elements of the largest tensor that is made"""

    @property
    def flops(self) -> float:
        """Operations of one call."""
        return float(sum(term.factor * math.prod(term.dims) for term in self.terms))

    @property
    def held_bytes(self) -> float:
        """Bytes of all inputs, weights and outputs."""
        tensors = [(drawn.shape, drawn.dtype) for drawn in self.inputs if drawn.value is None]
        tensors += [(shape, "float32") for shape in self.weights.values()]
        return float(sum(math.prod(shape) * DTYPE_BYTES.get(dtype, 8) for shape, dtype in (*tensors, *self.outputs)))

    def skeleton(self) -> tuple[Any, ...]:
        """Return what must be the same at all sizes: kinds of inputs, ranks, operators."""
        return (
            [(d.name, len(d.shape), d.dtype, d.how) for d in self.inputs],
            [(name, len(shape)) for name, shape in self.weights.items()],
            [(len(shape), dtype) for shape, dtype in self.outputs],
            [(t.operator, len(t.dims), t.factor) for t in self.terms],
        )

    def slots(self) -> list[int]:
        """Return every number that must be a formula of the sizes, in a fixed order."""
        found: list[int] = []
        for drawn in self.inputs:
            found += [*drawn.shape, *drawn.bounds]
        for shape in (*self.weights.values(), *(shape for shape, _ in self.outputs), *(t.dims for t in self.terms)):
            found += shape
        return found


def dtype_name(dtype: torch.dtype) -> str:
    """Return `float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


class InputRecorder(TorchFunctionMode):
    """Notes for each tensor made inside how it was drawn; a tensor that is computed from others is not noted."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: dict[int, tuple[str, tuple[int, int]]] = {}
        self.last: dict[int, str] = {}
        self._alive: list[Any] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call `func` and note what it drew."""
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self._alive.append(result)
            name = getattr(func, "__name__", "")
            self.last[id(result)] = name
            how = self._how(name, args, kwargs or {})
            if how is not None:
                self.drawn[id(result)] = how
        return result

    def _how(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, tuple[int, int]] | None:
        if name in ("rand", "randn", "rand_like", "randn_like"):
            return "normal", (0, 0)
        if name == "randint":
            whole = [int(value) for value in args if isinstance(value, int)]
            whole = [kwargs["low"], *whole] if "low" in kwargs else whole
            whole = [*whole, kwargs["high"]] if "high" in kwargs else whole
            return "integers", (whole[0], whole[1]) if len(whole) > 1 else (0, whole[0])
        source = next((arg for arg in args if isinstance(arg, torch.Tensor) and arg.ndim), None)
        before = self.drawn.get(id(source)) if source is not None else None
        others = [arg for arg in args if arg is not source]
        plain = all(not isinstance(arg, torch.Tensor) or not arg.ndim for arg in others)
        if before is None or not plain:
            return None
        if name in _KEEP:
            return before
        if name in _RESCALE and before[0] == "normal":
            return before
        return ("bernoulli", (0, 0)) if name in _COMPARE and before[0] == "normal" else None


class WorkRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operations of every operator, and refuses one that draws random numbers."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._trace = trace

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Call the operator and note its work."""
        name = func.overloadpacket.__name__
        if name in _RANDOM:
            raise Skipped(Reason.RANDOM, f"the model calls `{name}` while it computes")
        result = func(*args, **(kwargs or {}))
        first = result[0] if isinstance(result, (tuple, list)) and result else result
        if not isinstance(first, torch.Tensor) or name in _FREE or _is_view(func):
            return result
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        self._trace.largest = max(self._trace.largest, first.numel())
        if func.overloadpacket in flop_registry:
            self._trace.products += flop_registry[func.overloadpacket](*args, **(kwargs or {}), out_val=result)
            self._trace.terms.append(_product(name, args, first))
        else:
            read_whole = [one for one in tensors[:1] if name in _REDUCTIONS or one.ndim > first.ndim]
            self._trace.terms.append(Term(name, 1, tuple((read_whole or [first])[0].shape)))
        return result


def _is_view(func: Any) -> bool:
    returned = func._schema.returns
    return bool(returned) and returned[0].alias_info is not None and not returned[0].alias_info.is_write


def _product(name: str, args: Sequence[Any], result: torch.Tensor) -> Term:
    """Two operations for each product of two numbers."""
    if name in ("mm", "bmm"):
        return Term(name, 2, (*result.shape, args[0].shape[-1]), product=True)
    if name in ("addmm", "baddbmm"):
        return Term(name, 2, (*result.shape, args[1].shape[-1]), product=True)
    if name in ("convolution", "_convolution"):
        transposed = bool(args[6])
        outer = args[0].shape if transposed else result.shape
        return Term(name, 2, (*outer, *args[1].shape[1:]), product=True)
    raise Skipped(Reason.FORMULA, f"the operations of `{name}` have no formula here")

"""Parts of a task's declaration: axes, fills of inputs, views, comparisons and the arithmetic that is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from arena.task.expression import Expression


@dataclass(frozen=True)
class Axis:
    """A size the case chooses, in the closed interval [low, high], or one of `values`."""

    name: str
    doc: str
    low: int
    high: int
    multiple_of: int = 1
    values: tuple[int, ...] = ()
    default: int | None = None
    """the size in cases that do not give one; None where each has to"""

    def admits(self, size: int) -> bool:
        """Return whether `size` lies in the declared domain."""
        if self.values:
            return size in self.values
        return self.low <= size <= self.high and size % self.multiple_of == 0

    @property
    def domain_text(self) -> str:
        """The domain as a person reads it."""
        default = "" if self.default is None else f"; {self.default} where a case does not give it"
        if self.values:
            return "one of " + ", ".join(map(str, self.values)) + default
        multiple = f", a multiple of {self.multiple_of}" if self.multiple_of > 1 else ""
        return f"{self.low} … {self.high}{multiple}{default}"


@dataclass(frozen=True)
class Fill:
    """How an input is filled: a kind and its arguments, numbers or expressions over the case."""

    kind: str
    arguments: Mapping[str, Expression | str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """`normal 0 100`, for the label of a case."""
        texts = (text.text if isinstance(text, Expression) else text for text in self.arguments.values())
        return " ".join([self.kind, *texts])


@dataclass(frozen=True)
class ViewOf:
    """An input whose elements lie in the memory of another input: in cases where `when` is not 0, or in all."""

    input: str
    when: Expression | None = None


MODULE_CLASSES = ("ModelNew", "Model")
"""names of a module in the order of preference: KernelBench's candidates, and those of kernelbench.com"""


@dataclass(frozen=True)
class ModuleInterface:
    """The interface of a module, `ModelNew` or `Model`, that a candidate may define in place of the entry function."""

    init: tuple[Expression | tuple[Expression, ...], ...] = ()
    """the arguments of the constructor, numbers or lists of them, worked out for each case"""
    forward: tuple[str, ...] = ()
    """inputs by name, in the order in which `forward` takes them"""
    state: Mapping[str, str] = field(default_factory=dict)
    """the constant input that each entry of the module's `state_dict` holds"""
    zeros: tuple[str, ...] = ()
    """further entries, on which no output depends: they are 0"""

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions in `init`, those of lists among them."""
        return tuple(one for item in self.init for one in (item if isinstance(item, tuple) else (item,)))


class OutputComparison(StrEnum):
    """How an output is compared with the reference."""

    CLOSE = "close"
    """error ≤ atol × RMS(reference, or its row) + rtol × |reference|"""
    EXACT = "exact"
    """bit for bit: integers, masks, copies"""
    QUANTIZED = "quantized"
    """at most one code step off, in at most 1 % of the elements, or a few"""
    DECISION = "decision"
    """a choice: its regret, which reference.py computes in float64, is at most `atol`"""


class Precision(StrEnum):
    """The arithmetic in which the reference runs."""

    FLOAT64 = "float64"
    """floating inputs are widened to float64: the default"""
    FLOAT32 = "float32"
    """floating inputs are widened to float32: where the rounding of a quantization is part of the task"""
    NATIVE = "native"
    """inputs as they are: copies and bookkeeping"""


class Arithmetic(StrEnum):
    """The rounding that a kernel may do on its way to an output; all else is float32, sums always."""

    INPUTS = "inputs"
    """operands of matrix products to the dtype of the 16-bit inputs, where a case has any: the default"""
    TF32 = "tf32"
    """operands of matrix products as with `inputs`, those of float32 to TF32"""
    FLOAT32 = "float32"
    """nothing"""
    OPERATORS = "operators"
    """the result of every operator of the reference to the dtype of the 16-bit inputs, as PyTorch does"""


@dataclass(frozen=True)
class Tolerance:
    """A comparison and its bounds; None means what follows from the output's dtype and the allowed arithmetic."""

    comparison: OutputComparison = OutputComparison.CLOSE
    atol: float | None = None
    rtol: float | None = None

"""Parts of a task's declaration: axes, fills of inputs, and views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from arena.model.expression import Expression


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


@dataclass(frozen=True)
class ViewOf:
    """An input whose elements lie in the memory of another input: in cases where `when` is not 0, or in all."""

    input: str
    when: Expression | None = None

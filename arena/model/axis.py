"""Sizes that a case chooses: an axis of a task and its domain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A size the case chooses, in the closed interval [low, high], or one of `values`."""

    name: str
    doc: str
    low: int
    high: int
    multiple_of: int = 1
    values: tuple[int, ...] = ()

    def admits(self, size: int) -> bool:
        """Return whether `size` lies in the declared domain."""
        if self.values:
            return size in self.values
        return self.low <= size <= self.high and size % self.multiple_of == 0

    @property
    def domain_text(self) -> str:
        """The domain as a person reads it."""
        if self.values:
            return "one of " + ", ".join(map(str, self.values))
        multiple = f", a multiple of {self.multiple_of}" if self.multiple_of > 1 else ""
        return f"{self.low} … {self.high}{multiple}"

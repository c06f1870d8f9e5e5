"""Seconds around the timed passes of one side, which no clock of a pass holds: bounded beside the other side's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

SHORT, LONG, SINGLE, PROBE = "short", "long", "single", "probe"
"""passes by name"""

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _by_pass() -> dict[str, list[float]]:
    return defaultdict(list)


@dataclass
class Waits:
    """Seconds, by the name of the pass: a value a pass."""

    prepare_s: dict[str, list[float]] = field(default_factory=_by_pass)
    """how long the worker took to be woken, after new data were there"""
    ready_s: dict[str, list[float]] = field(default_factory=_by_pass)
    """and from when it was told of the pass to when the clock started"""
    drain_s: dict[str, list[float]] = field(default_factory=_by_pass)
    """and from the clock's end to the judge having read of what was written, and the device being idle"""

    def add(self, name: str, prepare_s: float, ready_s: float, drain_s: float) -> None:
        """Keep those of one pass."""
        self.prepare_s[name].append(prepare_s)
        self.ready_s[name].append(ready_s)
        self.drain_s[name].append(drain_s)

    def before_ms(self, name: str) -> Array:
        """Return how long each pass of this name was waited for, in milliseconds."""
        return _ms(self.prepare_s.get(name, ())) + _ms(self.ready_s.get(name, ()))

    def after_ms(self, *names: str) -> Array:
        """Return the same of what came after passes of these names; of all passes where none is given."""
        return np.concatenate([np.zeros(0), *(_ms(self.drain_s.get(name, ())) for name in names or self.drain_s)])

    def clear(self) -> None:
        """Forget those so far: passes that only plan others."""
        for kept in (self.prepare_s, self.ready_s, self.drain_s):
            kept.clear()


def _ms(seconds: Sequence[float]) -> Array:
    milliseconds: Array = np.asarray(seconds, dtype=np.float64) * 1e3
    return milliseconds

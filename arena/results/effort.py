"""Levels of effort: how much of an evaluation is timed. Records name it, and tables never mix two."""

from __future__ import annotations

from enum import StrEnum


class Effort(StrEnum):
    """The timed part of an evaluation. Every level compiles and checks the outputs of every case that it runs."""

    CORRECTNESS = "correctness"
    """Nothing is timed; there is no speedup."""
    SCREEN = "screen"
    """Timed seen cases, each until its speedup is known within 5 %; held-out cases only where they are asked for."""
    FULL = "full"
    """Timed seen and held-out cases, as reports and boards want it."""

    def times(self, split: str) -> bool:
        """Return whether cases of this split (`seen` or `heldout`) are timed."""
        return self is Effort.FULL or (self is Effort.SCREEN and split == "seen")

    @property
    def runs_heldout(self) -> bool:
        """Return whether held-out cases are evaluated unless the caller says otherwise."""
        return self is not Effort.SCREEN

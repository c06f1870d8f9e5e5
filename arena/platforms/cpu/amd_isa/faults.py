"""Exceptions that end an execution early: unknown instructions, and faults of the machine code."""

from __future__ import annotations

from arena.errors import ArenaError


class NotModelled(ArenaError):
    """The executor does not know an instruction, a modifier or a service: nothing can be said of the kernel."""


class MachineFault(ArenaError):
    """The machine code did what a GPU would fault on, or could not survive: an access out of bounds, a trap."""

"""Gluon, whose kernels the interpreter does not know: a launch says so."""

from __future__ import annotations

from typing import Any, NoReturn

from arena.platforms.cpu.triton.internals import Internals
from arena.results.messages import message


class NotEmulated(Exception):
    """A kernel is written in a language that the CPU platform does not run."""


def mend(at: Internals) -> None:
    """Refuse launches of Gluon kernels in words; they would look for the driver of a GPU."""
    try:
        from triton.experimental.gluon import _runtime
    except ImportError:  # a Triton without Gluon
        return

    def run(self: Any, *_: Any, **__: Any) -> NoReturn:
        raise NotEmulated(message("gluon_not_emulated", kernel=self.fn.__name__))

    at.replace(at.member(_runtime, "GluonJITFunction"), "run", run)

"""Applies the mends, once for each process."""

from __future__ import annotations

import os

from arena.errors import InfrastructureError

_done: list[str] = []


def install() -> None:
    """Mend Triton's interpreter in this process; a second call does nothing. Imports triton.

    `TRITON_INTERPRET=1` must have been in the environment before anything imported triton. Raises
    `InfrastructureError` naming the version of Triton where a part to be mended is not where it is expected.
    """
    if _done:
        return
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise InfrastructureError("set TRITON_INTERPRET=1 before the CPU platform imports triton")
    from arena.platforms.cpu.triton import (
        arithmetic,
        casting,
        formats,
        gluon,
        launch_order,
        launching,
        libdevice,
        memory,
        names,
        products,
        reductions,
        rewriting,
        sorting,
        tuning,
    )
    from arena.platforms.cpu.triton.internals import Internals

    at = Internals()
    if not isinstance(at.member(at.tl, "sum"), at.member(at.interpreter, "InterpretedFunction")):
        raise InfrastructureError("triton was imported before TRITON_INTERPRET=1 was set: it would compile for a GPU")
    formats.mend(at)
    for module in (
        casting,
        arithmetic,
        products,
        memory,
        reductions,
        sorting,
        libdevice,
        rewriting,
        launching,
        launch_order,
        tuning,
        gluon,
        names,
    ):
        module.mend(at)
    _done.append(at.version)

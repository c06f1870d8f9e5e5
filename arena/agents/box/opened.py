"""What both kinds of box share: a folder of their own, a way out, and an end that nothing outlives."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from arena.agents.box import PYTHONS, BoxPlan
from arena.agents.box.confined import Confined
from arena.agents.box.outlet import Outlet
from arena.processes.scratch import scratch


class Opened:
    """A box from the moment that it is opened; whoever derives from it sets `_outlet` and puts into `_started`."""

    _outlet: Outlet

    def __init__(self, plan: BoxPlan) -> None:
        self._plan = plan
        self._stack = ExitStack()
        self._support = Path(self._stack.enter_context(scratch("box"))).resolve()
        self._started: list[Confined] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            for boxed in self._started:
                boxed.close()
        finally:
            self._stack.close()

    def _pythons(self, interpreter: str) -> Path:
        """Return a folder in which `python3` and `python` are `interpreter`: it comes first on PATH.

        Scripts rather than links, since a virtual environment is found by the path that its Python is called by.
        """
        folder = self._support / "programs"
        folder.mkdir()
        for name in PYTHONS:
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(interpreter)} "$@"\n', encoding="utf-8")
            (folder / name).chmod(0o755)
        return folder

    @property
    def refused(self) -> Mapping[str, int]:
        """See `arena.agents.box.Box`."""
        return self._outlet.refused

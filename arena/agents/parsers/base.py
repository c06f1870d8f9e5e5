"""What the parsers share."""

from __future__ import annotations

from collections.abc import Iterable

from arena.model.session import Event


class LineParser:
    """A parser of which every line stands for itself; `model` and `error` as in `arena.agents.parsers.Parser`."""

    def __init__(self) -> None:
        self.model = ""
        self.error = ""

    def close(self) -> Iterable[Event]:
        """Nothing is ever left unfinished."""
        return ()

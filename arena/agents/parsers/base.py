"""What the parsers share."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from arena.results.session import Event, EventKind

_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


class LineParser:
    """A parser of which every line stands for itself; `model` and `error` as in `arena.agents.parsers.Parser`."""

    def __init__(self) -> None:
        self.model = ""
        self.error = ""

    def close(self) -> Iterable[Event]:
        """Nothing is ever left unfinished."""
        return ()


class JsonLines(LineParser):
    """A parser of JSON objects, one a line."""

    def feed(self, line: str) -> Iterable[Event]:
        """The events of one line; one that is none of the format is a note with it, after what it leaves unfinished."""
        if not line.strip():
            return []
        try:
            return list(self._events(json.loads(line)))
        except _UNREADABLE:
            return [*self.close(), Event(EventKind.NOTE, line.rstrip("\r\n"))]

    @abstractmethod
    def _events(self, data: dict[str, Any]) -> Iterator[Event]:
        """The events of one object; may raise what reading a wrong one raises."""

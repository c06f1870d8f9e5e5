"""Programs that print text for people: every line is something the agent said."""

from __future__ import annotations

from collections.abc import Iterable

from arena.agents.parsers.base import LineParser
from arena.results.session import Event, EventKind


class Text(LineParser):
    """Knows neither tools nor tokens: for programs without a machine-readable output."""

    def feed(self, line: str) -> Iterable[Event]:
        """One message; nothing for an empty line."""
        text = line.rstrip("\r\n")
        return [Event(EventKind.MESSAGE, text)] if text.strip() else []

"""Programs that print text for people: every line is something the agent said."""

from __future__ import annotations

from collections.abc import Iterable

from arena.model.session import Event, EventKind


class Text:
    """Knows neither tools nor tokens: for programs without a machine-readable output."""

    def __init__(self) -> None:
        self.model = ""
        self.error = ""

    def feed(self, line: str) -> Iterable[Event]:
        """One message; nothing for an empty line."""
        text = line.rstrip("\r\n")
        return [Event(EventKind.MESSAGE, text)] if text.strip() else []

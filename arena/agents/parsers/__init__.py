"""Parsers by format: what an agent's program prints becomes the common events of a transcript.

Adding a format is a module here, a line in the table, and the name in `schemas/agent.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Protocol

from arena.errors import UsageError
from arena.results.session import Event


class Parser(Protocol):
    """Reads one session of an agent's program, line by line.

    Tokens and cost of an event are what it used up, so that their sum over a session is the session's.
    """

    model: str
    """the model as the program reports it, empty until it does"""
    error: str
    """what the program says went wrong in the end (not logged in, quota used up), empty if nothing"""

    def feed(self, line: str) -> Iterable[Event]:
        """The events of one line, with `at_s` left 0. A line that cannot be read is a note, never an exception."""

    def close(self) -> Iterable[Event]:
        """The session has ended: the events of what came in pieces and was left unfinished."""


_CLASSES = {
    "text": "text:Text",
    "claude_stream": "claude_stream:ClaudeStream",
    "codex_json": "codex_json:CodexJson",
    "cursor_stream": "cursor_stream:CursorStream",
    "gemini_stream": "gemini_stream:GeminiStream",
    "opencode_json": "opencode_json:OpencodeJson",
    "mini_swe_agent": "mini_swe_agent:MiniSweAgent",
}


def _lazily(place: str) -> Callable[[], Parser]:
    """A constructor that imports its module when it is first called."""
    module, _, name = place.partition(":")

    def build() -> Parser:
        parser: Parser = getattr(import_module(f"{__name__}.{module}"), name)()
        return parser

    return build


PARSERS: dict[str, Callable[[], Parser]] = {name: _lazily(place) for name, place in _CLASSES.items()}
"""What makes a fresh parser, by the name that a definition's `events` gives."""


def make_parser(events: str) -> Parser:
    """A fresh parser for one session."""
    if events not in PARSERS:
        raise UsageError(f"unknown event format {events!r}; expected one of: {', '.join(PARSERS)}")
    return PARSERS[events]()

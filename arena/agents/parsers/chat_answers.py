"""The lines that the agent of a bare model writes about its conversations: one JSON object each.

`type` is `settings`, `prompt`, `answer`, `reply`, `evaluation` or `note`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arena.agents.parsers.base import JsonLines
from arena.results.session import Event, EventKind, Tokens


class ChatAnswers(JsonLines):
    """Knows what every line means, since this package writes them."""

    def _events(self, data: dict[str, Any]) -> Iterator[Event]:
        kind, where = data["type"], str(data.get("conversation", ""))
        if kind == "answer":
            yield from self._answer(data, where)
        elif kind == "prompt":
            yield Event(EventKind.NOTE, f"prompt of {len(data['text'])} characters; `--raw` prints it", tool=where)
        elif kind == "evaluation":
            yield Event(EventKind.NOTE, f"evaluation {data['number']} is of {where}", tool=where)
        else:
            yield Event(EventKind.NOTE, data["text"], tool=where, failed=bool(data.get("failed")))

    def _answer(self, data: dict[str, Any], where: str) -> Iterator[Event]:
        self.model = data["model"]
        used = data["tokens"]
        tokens = Tokens(used["input"], used["output"], used["cached"])
        if data["reasoning"]:
            yield Event(EventKind.REASONING, data["reasoning"], tool=where)
        yield Event(EventKind.MESSAGE, data["text"], tool=where, tokens=tokens, cost_usd=data["cost_usd"])

"""Gemini CLI with `--output-format stream-json`: one JSON object a line.

Format: https://geminicli.com/docs/cli/headless, and version 0.61.0 itself. A message comes in pieces, which are put
together until something else comes. Thoughts are not printed. Tokens come once, in the last line, by model; there the
output leaves the thoughts out that the total counts, so the output is taken as the total without the input.
What a session cost is not said.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from arena.agents.parsers.base import JsonLines
from arena.agents.parsers.edits import unified
from arena.results.session import Event, EventKind, Tokens

_ROUTED = "auto"
"""reported in place of a model where the program chooses one for each request"""


class GeminiStream(JsonLines):
    """Reads one session; holds the pieces of the message that is being printed."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[str] = []

    def close(self) -> Iterable[Event]:
        """The message that was being printed when the session was ended."""
        return list(self._message())

    def _events(self, data: dict[str, Any]) -> Iterator[Event]:
        kind = data["type"]
        if kind == "message":
            if data["role"] == "assistant":
                self._pieces.append(data["content"])
            return  # else it is the prompt again
        made = self._event(kind, data)  # before the message is given out: a line that fails here must not lose it
        yield from self._message()
        yield made

    def _event(self, kind: str, data: dict[str, Any]) -> Event:
        match kind:
            case "init":
                self.model = "" if data["model"] == _ROUTED else data["model"]
                return Event(EventKind.NOTE, f"Gemini CLI, {data['model']}")
            case "tool_use":
                return _call(data)
            case "tool_result":
                text = data.get("output") or (data.get("error") or {}).get("message", "")
                return Event(EventKind.TOOL_RESULT, text, call=data["tool_id"], failed=data["status"] != "success")
            case "error":
                severe = data.get("severity") == "error"
                self.error = data["message"] if severe else self.error
                return Event(EventKind.NOTE, data["message"], failed=severe)
            case "result":
                return self._result(data)
        return Event(EventKind.NOTE, f"{kind}: {json.dumps(data, ensure_ascii=False)}")

    def _result(self, data: dict[str, Any]) -> Event:
        failed = data["status"] != "success"
        text = (data.get("error") or {}).get("message") or self.error or data["status"]
        self.error = text if failed else ""  # what came before was got over
        stats = data.get("stats") or {}
        models = stats.get("models") or {}
        if not self.model and models:
            self.model = max(models, key=lambda name: models[name]["total_tokens"])
        text = self.error if failed else f"{data['status']} after {stats.get('tool_calls', 0)} tool calls"
        return Event(EventKind.USAGE, text, failed=failed, tokens=_tokens(stats))

    def _message(self) -> Iterator[Event]:
        text = "".join(self._pieces)
        self._pieces.clear()
        if text.strip():
            yield Event(EventKind.MESSAGE, text)


def _call(data: dict[str, Any]) -> Event:
    """A tool call; the tools that edit say what they replace."""
    tool, given = data["tool_name"], data["parameters"]
    diff = ""
    if tool == "replace":
        diff = unified(given["file_path"], given["old_string"], given["new_string"])
    elif tool == "write_file":
        diff = unified(given["file_path"], None, given["content"])
    text = json.dumps(given, ensure_ascii=False)
    return Event(EventKind.TOOL_CALL, text, tool=tool, call=data["tool_id"], diff=diff)


def _tokens(stats: dict[str, Any]) -> Tokens:
    """Of all models together; `input_tokens` includes what was read from the cache."""
    read, written = stats.get("input_tokens") or 0, stats.get("output_tokens") or 0
    return Tokens(read, max(written, (stats.get("total_tokens") or 0) - read), stats.get("cached") or 0)

"""Cursor's `cursor-agent` with `--output-format stream-json`: one JSON object a line.

Format: https://cursor.com/docs/cli/reference/output-format, and public descriptions of what the program prints beyond
it (`thinking`, `usage`, `diffString`); not compared with the program itself. Tools are found by how their key ends
(`shellToolCall`), not from a list, and what is missing from a line is empty. Tokens come once, at the end, if at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from arena.agents.parsers.base import JsonLines
from arena.results.session import Event, EventKind, Tokens

_TOOL = "ToolCall"


class CursorStream(JsonLines):
    """Reads one session; holds the pieces of the thought that is being printed."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[str] = []

    def _events(self, data: dict[str, Any]) -> Iterator[Event]:
        kind = data["type"]
        if kind == "thinking" and data.get("subtype") == "delta":
            self._pieces.append(data["text"])
            return
        made = list(self._made(kind, data))  # before the thought is given out: a line that fails here must not lose it
        yield from self.close()
        yield from made

    def close(self) -> Iterable[Event]:
        """The thought that was being printed."""
        thought = "".join(self._pieces)
        self._pieces.clear()
        return [Event(EventKind.REASONING, thought)] if thought.strip() else []

    def _made(self, kind: str, data: dict[str, Any]) -> Iterator[Event]:
        match kind:
            case "system":
                self.model = data.get("model", "")
                yield Event(EventKind.NOTE, f"cursor-agent, {self.model}")
            case "assistant":
                yield from _said(data["message"]["content"])
            case "tool_call":
                yield _tool(data)
            case "result":
                yield self._result(data)
            case "user" | "thinking":  # the prompt again; the end of a thought
                return
            case _:
                yield Event(EventKind.NOTE, f"{kind}: {json.dumps(data, ensure_ascii=False)}")

    def _result(self, data: dict[str, Any]) -> Event:
        failed = bool(data.get("is_error"))
        if failed:
            self.error = data.get("result") or data.get("subtype", "error")
        return Event(EventKind.USAGE, self.error or data["subtype"], failed=failed, tokens=_tokens(data.get("usage")))


def _said(content: list[dict[str, Any]]) -> Iterator[Event]:
    for block in content:
        if block.get("text"):
            yield Event(EventKind.MESSAGE, block["text"])


def _tool(data: dict[str, Any]) -> Event:
    """The beginning of a call, or its result."""
    name, body = _named(data["tool_call"])
    call = data.get("call_id", "")
    if data["subtype"] == "started":
        arguments = body.get("args", {})
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return Event(EventKind.TOOL_CALL, text, tool=name, call=call)
    result = body.get("result", {})
    text, failed = _outcome(result)
    diff = (result.get("success") or {}).get("diffString", "")
    return Event(
        EventKind.TOOL_RESULT, text, tool=name, call=call, diff=diff, failed=failed or data["subtype"] == "failed"
    )


def _named(call: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """`{"shellToolCall": {…}}`, or `{"function": {"name": …, "arguments": …}}` for tools without their own form."""
    function = call.get("function")
    if function is not None:
        return function["name"], {"args": function.get("arguments", ""), "result": function.get("result", {})}
    key = next(key for key in call if key.endswith(_TOOL))
    return key.removesuffix(_TOOL), call[key]


def _outcome(result: dict[str, Any]) -> tuple[str, bool]:
    """What a tool answered: `success` with its fields, or whatever stands in its place."""
    done = result.get("success")
    if done is None:
        return (json.dumps(result, ensure_ascii=False), True) if result else ("", False)
    if "stdout" in done or "stderr" in done:
        return f"{done.get('stdout', '')}{done.get('stderr', '')}", bool(done.get("exitCode"))
    text = done.get("content") or done.get("message")
    return text if isinstance(text, str) else json.dumps(done, ensure_ascii=False), bool(done.get("exitCode"))


def _tokens(usage: dict[str, Any] | None) -> Tokens:
    """`inputTokens` is taken to leave out what was read from or written to the cache, as providers count it."""
    if not usage:
        return Tokens()
    cached, made = usage.get("cacheReadTokens") or 0, usage.get("cacheWriteTokens") or 0
    return Tokens((usage.get("inputTokens") or 0) + cached + made, usage.get("outputTokens") or 0, cached)

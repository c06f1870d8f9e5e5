"""OpenCode with `run --format json`: one JSON object a line.

Format: https://opencode.ai/docs/cli, and version 1.18.33 itself. A tool is printed once, when it has ended, with its
arguments and its output. Tokens and cost come with each step; the input leaves out what was read from or written to
the provider's cache, and the output leaves out the thoughts, so both are added. The model is not said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from arena.agents.parsers.base import JsonLines
from arena.results.session import Event, EventKind, Tokens


class OpencodeJson(JsonLines):
    """Reads one session; each line stands for itself."""

    def _events(self, data: dict[str, Any]) -> Iterator[Event]:
        part = data.get("part") or {}
        match data["type"]:
            case "text":
                yield Event(EventKind.MESSAGE, part["text"])
            case "reasoning":
                if part["text"].strip():
                    yield Event(EventKind.REASONING, part["text"])
            case "tool_use":
                yield from _tool(part)
            case "step_finish":
                yield Event(EventKind.USAGE, tokens=_tokens(part["tokens"]), cost_usd=float(part.get("cost") or 0.0))
            case "step_start":
                return
            case "error":
                self.error = _reason(data["error"])
                yield Event(EventKind.NOTE, self.error, failed=True)
            case kind:
                yield Event(EventKind.NOTE, f"{kind}: {json.dumps(data, ensure_ascii=False)}")


def _tool(part: dict[str, Any]) -> Iterator[Event]:
    """A call and its result. An edit brings its own diff, from after it was done."""
    state = part["state"]
    metadata = state.get("metadata") or {}
    diff = metadata.get("diff") or ""
    arguments = json.dumps(state.get("input") or {}, ensure_ascii=False)
    yield Event(EventKind.TOOL_CALL, arguments, tool=part["tool"], call=part["callID"], diff=diff)
    failed = state["status"] == "error" or bool(metadata.get("exit"))
    text = state.get("output") or state.get("error") or ""
    yield Event(EventKind.TOOL_RESULT, text, tool=part["tool"], call=part["callID"], failed=failed)


def _tokens(tokens: dict[str, Any]) -> Tokens:
    cache = tokens.get("cache") or {}
    read, made = cache.get("read") or 0, cache.get("write") or 0
    output = (tokens.get("output") or 0) + (tokens.get("reasoning") or 0)
    return Tokens((tokens.get("input") or 0) + read + made, output, read)


def _reason(error: dict[str, Any]) -> str:
    """The provider's words, where they are there."""
    return str((error.get("data") or {}).get("message") or error.get("message") or error.get("name") or error)

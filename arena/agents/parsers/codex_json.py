"""Codex with `codex exec --json`: one JSON object a line.

Format: https://developers.openai.com/codex/noninteractive. Tokens come once, when the turn is completed, and hold
for all turns of the model in it; files that were changed are named, but how they changed is not said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from arena.agents.parsers.base import JsonLines
from arena.results.session import Event, EventKind, Tokens


class CodexJson(JsonLines):
    """Reads one session; `model` stays empty, since Codex does not say which one answers."""

    def __init__(self) -> None:
        super().__init__()
        self._started: set[str] = set()

    def _events(self, data: dict[str, Any]) -> Iterator[Event]:
        match data["type"]:
            case "thread.started":
                yield Event(EventKind.NOTE, f"thread {data['thread_id']}")
            case "turn.started" | "item.updated":
                return
            case "turn.completed":
                self.error = ""
                yield Event(EventKind.USAGE, tokens=_tokens(data["usage"]))
            case "turn.failed":
                self.error = data["error"]["message"]
            case "error":  # also a request that is tried again: only `turn.failed` is final
                yield Event(EventKind.NOTE, data["message"], failed=True)
            case "item.started":
                yield from self._started_item(data["item"])
            case "item.completed":
                yield from self._completed_item(data["item"])
            case kind:
                yield Event(EventKind.NOTE, f"{kind}: {json.dumps(data, ensure_ascii=False)}")

    def _started_item(self, item: dict[str, Any]) -> Iterator[Event]:
        call = _call(item)
        if call is not None:
            self._started.add(item["id"])
            yield call

    def _completed_item(self, item: dict[str, Any]) -> Iterator[Event]:
        match item["type"]:
            case "agent_message":
                yield Event(EventKind.MESSAGE, item["text"])
            case "reasoning":
                yield Event(EventKind.REASONING, item["text"])
            case "error":
                yield Event(EventKind.NOTE, item["message"], failed=True)
            case "todo_list":
                yield Event(EventKind.NOTE, _todo(item))
            case _:
                call = _call(item)
                if call is None:
                    yield Event(EventKind.NOTE, f"{item['type']}: {json.dumps(item, ensure_ascii=False)}")
                    return
                if item["id"] not in self._started:
                    yield call
                self._started.discard(item["id"])
                yield Event(EventKind.TOOL_RESULT, _answer(item), call=item["id"], failed=_failed(item))


def _call(item: dict[str, Any]) -> Event | None:
    """The tool call that an item stands for, None where it is none."""
    match item["type"]:
        case "command_execution":
            tool, text = item["type"], item["command"]
        case "file_change":
            tool, text = item["type"], "\n".join(f"{one['kind']} {one['path']}" for one in item["changes"])
        case "mcp_tool_call":
            tool, text = f"{item['server']}.{item['tool']}", json.dumps(item.get("arguments"), ensure_ascii=False)
        case "collab_tool_call":
            tool, text = item["tool"], item.get("prompt") or ""
        case "web_search":
            tool, text = item["type"], item["query"]
        case _:
            return None
    return Event(EventKind.TOOL_CALL, text, tool=tool, call=item["id"])


def _answer(item: dict[str, Any]) -> str:
    match item["type"]:
        case "command_execution":
            return str(item["aggregated_output"])
        case "mcp_tool_call":
            if item.get("error"):
                return str(item["error"]["message"])
            content = (item.get("result") or {}).get("content", [])
            return "\n".join(part.get("text", f"[{part['type']}]") for part in content)
    return str(item.get("status", ""))


def _failed(item: dict[str, Any]) -> bool:
    return item.get("status", "completed") != "completed" or item.get("exit_code") not in (None, 0)


def _todo(item: dict[str, Any]) -> str:
    return "\n".join(f"[{'x' if one['completed'] else ' '}] {one['text']}" for one in item["items"])


def _tokens(usage: dict[str, Any]) -> Tokens:
    return Tokens(usage["input_tokens"], usage["output_tokens"], usage.get("cached_input_tokens", 0))

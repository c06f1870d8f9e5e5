"""Claude Code with `--output-format stream-json`: one JSON object a line.

Format: the CLI reference and the message types of the Agent SDK, https://docs.claude.com/en/docs/claude-code.
The lines of a message give its usage as it was when the message began, so the tokens of the output are right only
with `--include-partial-messages` (the event `message_delta`), and otherwise at the end: `result` has the totals of
all models, from which what was counted before is taken off. Cost comes at the end only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from arena.agents.parsers.base import JsonLines
from arena.agents.parsers.edits import replaced, unified
from arena.results.session import Event, EventKind, Tokens

_SYNTHETIC = "<synthetic>"
"""the model of messages that the program wrote itself, such as `Not logged in`"""
_QUIET = {"thinking_tokens", "status", "task_started", "task_progress", "task_updated", "task_notification"}
"""what the program says of its own progress; the raw transcript keeps it"""


class ClaudeStream(JsonLines):
    """Reads one session; remembers what each message was counted with, and the files as the program saw them."""

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[str, Tokens] = {}
        self._cost_usd = 0.0
        self._current = ""
        self._files = _Files()

    def _events(self, data: dict[str, Any]) -> Iterator[Event]:
        match data["type"]:
            case "system":
                yield from self._system(data)
            case "assistant":
                yield from self._assistant(data)
            case "user":
                yield from self._user(data)
            case "stream_event":
                yield from self._partial(data["event"])
            case "result":
                yield self._result(data)
            case kind:
                yield Event(EventKind.NOTE, f"{kind}: {json.dumps(data, ensure_ascii=False)}")

    def _system(self, data: dict[str, Any]) -> Iterator[Event]:
        match data["subtype"]:
            case "init":
                self.model = data["model"]
                text = f"Claude Code {data.get('claude_code_version', '')}, {self.model}; {', '.join(data['tools'])}"
                yield Event(EventKind.NOTE, text)
            case "api_retry":
                attempt = f"attempt {data['attempt']} of {data['max_retries']}"
                wait = data["retry_delay_ms"] / 1000
                text = f"{attempt} failed: {data['error']} ({data['error_status']}); the next in {wait:.1f} s"
                yield Event(EventKind.NOTE, text, failed=True)
            case subtype if subtype not in _QUIET:
                yield Event(EventKind.NOTE, subtype.replace("_", " "))

    def _assistant(self, data: dict[str, Any]) -> Iterator[Event]:
        message = data["message"]
        if message["model"] == _SYNTHETIC:
            yield Event(EventKind.NOTE, _text(message["content"]), failed="error" in data)
            return
        parent = data.get("parent_tool_use_id") or ""
        tokens = self._count(message["id"], _tokens(message["usage"]))
        for block in message["content"]:
            event = self._block(block, parent)
            if event is not None:
                yield replace(event, tokens=tokens)
                tokens = Tokens()
        if tokens != Tokens():
            yield Event(EventKind.USAGE, parent=parent, tokens=tokens)

    def _block(self, block: dict[str, Any], parent: str) -> Event | None:
        match block["type"]:
            case "text":
                return Event(EventKind.MESSAGE, block["text"], parent=parent)
            case "thinking":
                return Event(EventKind.REASONING, block["thinking"], parent=parent) if block["thinking"] else None
            case "tool_use" | "server_tool_use":
                diff = self._files.diff(block["name"], block["input"])
                text = json.dumps(block["input"], ensure_ascii=False)
                return Event(EventKind.TOOL_CALL, text, tool=block["name"], call=block["id"], parent=parent, diff=diff)
        return None

    def _user(self, data: dict[str, Any]) -> Iterator[Event]:
        parent = data.get("parent_tool_use_id") or ""
        content = data["message"]["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        self._files.learn(data.get("tool_use_result"))
        for block in content:
            if block["type"] == "tool_result":
                text, failed = _text(block.get("content", "")), bool(block.get("is_error"))
                yield Event(EventKind.TOOL_RESULT, text, call=block["tool_use_id"], parent=parent, failed=failed)
            elif block["type"] == "text" and not parent:  # a subagent's prompt is already an argument of its call
                yield Event(EventKind.NOTE, block["text"])

    def _partial(self, event: dict[str, Any]) -> Iterator[Event]:
        if event["type"] == "message_start":
            self._current = event["message"]["id"]
        elif event["type"] == "message_delta":
            tokens = self._count(self._current, _tokens(event["usage"]))
            if tokens != Tokens():
                yield Event(EventKind.USAGE, tokens=tokens)

    def _result(self, data: dict[str, Any]) -> Event:
        text = data.get("result") or "; ".join(data.get("errors", ())) or data["subtype"]
        self.error = text if data["is_error"] else ""
        before = sum(self._counted.values(), Tokens())
        rest = _beyond(_total(data), before)
        self._counted["result"] = self._counted.get("result", Tokens()) + rest
        cost = max(0.0, data["total_cost_usd"] - self._cost_usd)
        self._cost_usd += cost
        text = self.error or f"{data['subtype']} after {data['num_turns']} turns"
        return Event(EventKind.USAGE, text, failed=bool(data["is_error"]), tokens=rest, cost_usd=cost)

    def _count(self, message: str, tokens: Tokens) -> Tokens:
        """What a message used beyond what was counted for it, which it then is."""
        before = self._counted.get(message, Tokens())
        new = _beyond(tokens, before)
        self._counted[message] = before + new
        return new


class _Files:
    """The contents of files as the program reported them, so that an edit is a diff of whole files."""

    def __init__(self) -> None:
        self._contents: dict[str, str] = {}

    def learn(self, result: object) -> None:
        """Take in what a tool says of a file: read, edited or written."""
        if not isinstance(result, dict):
            return
        file = result.get("file")
        if isinstance(file, dict) and file.get("startLine") == 1 and file.get("numLines") == file.get("totalLines"):
            self._contents[file["filePath"]] = file["content"]
        elif "filePath" in result and "originalFile" in result:
            before = result["originalFile"] or ""
            after = result.get("content")
            if after is None:
                after = replaced(before, result["oldString"], result["newString"], bool(result.get("replaceAll")))
            self._contents[result["filePath"]] = after

    def diff(self, tool: str, arguments: dict[str, Any]) -> str:
        """The edit that a tool call asks for; empty where it is none."""
        path = arguments.get("file_path", "")
        if tool == "Write":
            return unified(path, self._contents.get(path), arguments["content"])
        steps = arguments["edits"] if tool == "MultiEdit" else [arguments] if tool == "Edit" else []
        known = self._contents.get(path)
        if known is None:  # only the pieces are known: each is shown for itself
            return "".join(unified(path, step["old_string"], step["new_string"]) for step in steps)
        after = known
        for step in steps:
            after = replaced(after, step["old_string"], step["new_string"], bool(step.get("replace_all")))
        return unified(path, known, after)


def _text(content: str | list[dict[str, Any]]) -> str:
    """The text of a message or of a tool's answer; anything else in it is named."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] if block["type"] == "text" else f"[{block['type']}]" for block in content)


def _tokens(usage: dict[str, Any]) -> Tokens:
    cached = usage.get("cache_read_input_tokens") or 0
    made = usage.get("cache_creation_input_tokens") or 0
    return Tokens((usage.get("input_tokens") or 0) + cached + made, usage.get("output_tokens") or 0, cached)


def _total(data: dict[str, Any]) -> Tokens:
    """All models and subagents; `usage` alone leaves the subagents out."""
    total = Tokens()
    for used in data.get("modelUsage", {}).values():
        cached, made = used["cacheReadInputTokens"], used["cacheCreationInputTokens"]
        total += Tokens(used["inputTokens"] + cached + made, used["outputTokens"], cached)
    return total


def _beyond(new: Tokens, old: Tokens) -> Tokens:
    """`new` without `old`, never less than nothing."""
    return Tokens(max(0, new.input - old.input), max(0, new.output - old.output), max(0, new.cached - old.cached))

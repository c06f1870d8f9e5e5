"""mini-swe-agent's messages, as `arena/agents/inside/mini_swe_agent.py` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arena.agents.parsers.base import JsonLines
from arena.results.session import Event, EventKind, Tokens

SUBMITTED = "Submitted"
"""the exit status of an agent that ended by itself"""


class MiniSweAgent(JsonLines):
    """One line is one message: the model's with its commands and tokens, a command's output, the ending."""

    def _events(self, message: dict[str, Any]) -> Iterator[Event]:
        kind = message["type"]
        if kind == "start":
            self.model = message["model"]
            yield Event(EventKind.NOTE, f"mini-swe-agent {message['version']} with {self.model or 'no model'}")
        elif kind == "assistant":
            yield from _answer(message)
        elif "returncode" in message:
            yield _result(message)
        elif kind == "exit":
            yield self._ending(message)
        else:  # the prompts, and what the library answers to a call that it cannot read
            yield Event(EventKind.NOTE, message["text"], tokens=_tokens(message), cost_usd=_cost(message))

    def _ending(self, message: dict[str, Any]) -> Event:
        status, text = message["exit_status"], message["text"].strip()
        if status == SUBMITTED:
            return Event(EventKind.NOTE, "submitted")
        self.error = text if status in text else f"{status}: {text}".removesuffix(": ")
        return Event(EventKind.NOTE, self.error, failed=True)


def _answer(message: dict[str, Any]) -> Iterator[Event]:
    """Reasoning, text and commands of one answer; its tokens belong to the call of the model, not to one of them."""
    if message.get("reasoning"):
        yield Event(EventKind.REASONING, message["reasoning"])
    if message["text"]:
        yield Event(EventKind.MESSAGE, message["text"])
    for command in message.get("commands", ()):
        yield Event(EventKind.TOOL_CALL, command["command"], tool="bash", call=command["call"])
    if message.get("usage"):
        yield Event(EventKind.USAGE, tokens=_tokens(message), cost_usd=_cost(message))


def _result(message: dict[str, Any]) -> Event:
    text = "\n".join(filter(None, (message["text"], message["exception"])))
    return Event(EventKind.TOOL_RESULT, text, tool="bash", call=message["call"], failed=message["returncode"] != 0)


def _tokens(message: dict[str, Any]) -> Tokens:
    usage = message.get("usage") or {}
    return Tokens(int(usage.get("input", 0)), int(usage.get("output", 0)), int(usage.get("cached", 0)))


def _cost(message: dict[str, Any]) -> float:
    return float(message.get("cost_usd") or 0.0)

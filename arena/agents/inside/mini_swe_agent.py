"""Makes mini-swe-agent say what it does: one JSON line on standard output for each message of its conversation.

The library's own command loads this: `mini --agent-class mini_swe_agent.reporting …` with this folder on PYTHONPATH,
so it runs with whatever interpreter `mini` was installed for, and everything else is as the library sets it.
It is written for mini-swe-agent 2, whose agents take in every message through `add_messages`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Message = Mapping[str, Any]
"""As the library holds it: `role` and `content` of the model's API, and what it found out itself in `extra`."""


class _Agent(Protocol):
    add_messages: Callable[..., list[Any]]


def reporting(model: Any, env: Any, **config: Any) -> _Agent:
    """The library's default agent, which prints each message before it goes on."""
    from importlib import import_module

    library = import_module("minisweagent")
    os.environ.pop("PYTHONPATH", None)  # it was for loading this file, the agent's own programs do without
    agent: _Agent = import_module("minisweagent.agents.default").DefaultAgent(model, env, **config)
    take = agent.add_messages

    def add_messages(*messages: Message) -> list[Any]:
        for message in messages:
            say(described(message))
        return take(*messages)

    agent.add_messages = add_messages
    say({"type": "start", "version": library.__version__, "model": str(getattr(model.config, "model_name", ""))})
    return agent


def described(message: Message) -> dict[str, Any]:
    """What a line says of a message: its text, its commands, the result of one, the ending, the tokens."""
    extra = message.get("extra") or {}
    line: dict[str, Any] = {"type": message.get("role") or "message", "text": text_of(message.get("content"))}
    if message.get("reasoning_content"):
        line["reasoning"] = text_of(message["reasoning_content"])
    if extra.get("actions"):
        line["commands"] = [
            {"call": action.get("tool_call_id", ""), "command": action.get("command", "")}
            for action in extra["actions"]
        ]
    if "returncode" in extra:
        line |= {"call": message.get("tool_call_id", ""), "returncode": extra["returncode"]}
        line |= {"text": extra.get("raw_output", ""), "exception": extra.get("exception_info") or ""}
    if "exit_status" in extra:
        line["exit_status"] = extra["exit_status"]
    return line | used(extra)


def used(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Tokens and cost (US dollars) of the call of the model that a message came from; nothing where there was none."""
    response = extra.get("response")
    if not isinstance(response, dict):
        return {}
    usage = response.get("usage") or {}
    details = usage.get("prompt_tokens_details") or {}
    tokens = {
        "input": usage.get("prompt_tokens") or 0,
        "output": usage.get("completion_tokens") or 0,
        "cached": details.get("cached_tokens") or 0,
    }
    return {"usage": tokens, "cost_usd": extra.get("cost") or 0.0}


def text_of(content: object) -> str:
    """The text of a message, which is a string or a list of parts."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and part.get("text"))
    return "" if content is None else str(content)


def say(line: Mapping[str, Any]) -> None:
    """One line, at once."""
    sys.stdout.write(json.dumps(line, default=str) + "\n")
    sys.stdout.flush()

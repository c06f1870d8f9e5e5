"""A stand-in for Anthropic's Messages API, streaming and not: https://docs.anthropic.com/en/api/messages-streaming."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from tests.agents.standins.base import (
    Fault,
    Json,
    Reply,
    Request,
    Seen,
    StandIn,
    Turn,
    as_events,
    as_json,
    call_id,
    pieces,
)


@dataclass
class AnthropicStandIn(StandIn):
    """Serves `POST /v1/messages` and `/v1/messages/count_tokens`; answers HEAD to programs that look for it."""

    def answer(self, request: Request) -> Reply:
        """A turn of the script."""
        path = request.path.partition("?")[0]
        if request.method == "HEAD":
            return as_json({})
        if path == "/v1/messages/count_tokens":
            return as_json({"input_tokens": len(json.dumps(request.body)) // 4})
        if path != "/v1/messages":
            return _refused(Fault(404, "not_found_error", f"no such place: {path}"))
        step, number = self.step(find_availability(request.body) if request.body.get("tools") else None)
        return _refused(step) if isinstance(step, Fault) else self._reply(request.body, step, number)

    def _reply(self, body: Json, turn: Turn, number: int) -> Reply:
        reply = next(self.numbers)
        message = {
            "id": f"msg_{reply:06d}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "stop_sequence": None,
        }
        blocks = list(_blocks(turn, reply, number))
        usage = {
            "input_tokens": turn.input_tokens - turn.cached_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": turn.cached_tokens,
        }
        reason = "tool_use" if turn.calls else "end_turn"
        if body.get("stream"):
            return as_events((str(data["type"]), data) for data in _stream(message, blocks, usage, turn, reason))
        usage["output_tokens"] = turn.output_tokens
        return as_json({**message, "content": blocks, "stop_reason": reason, "usage": usage})


def find_availability(body: Json) -> Seen:
    """What a request shows: the model's turns so far are those of the assistant; reminders may follow results."""
    messages = body["messages"]
    newest = takewhile(lambda message: message["role"] != "assistant", reversed(messages))
    contents = [message["content"] for message in newest if isinstance(message["content"], list)]
    blocks = [block for content in reversed(contents) for block in content]
    return Seen(
        turn=sum(message["role"] == "assistant" for message in messages),
        prompt=_text(messages[0]["content"]),
        tools={tool["name"]: tool.get("input_schema", {}) for tool in body["tools"]},
        results=tuple(_text(block.get("content", "")) for block in blocks if block["type"] == "tool_result"),
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    assert isinstance(content, list)
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def _blocks(turn: Turn, reply: int, number: int) -> Iterator[Json]:
    if turn.reasoning:
        yield {"type": "thinking", "thinking": turn.reasoning, "signature": "c2lnbmVk"}
    if turn.text or not turn.calls:
        yield {"type": "text", "text": turn.text}
    for index, call in enumerate(turn.calls):
        identifier = call_id(f"toolu_{reply:06d}", number, index)
        yield {"type": "tool_use", "id": identifier, "name": call.tool, "input": dict(call.arguments)}


def _stream(message: Json, blocks: list[Json], usage: Json, turn: Turn, reason: str) -> Iterator[Json]:
    begun = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    for index, block in enumerate(blocks):
        start, deltas = _parts(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {**usage, "output_tokens": turn.output_tokens}}
    yield {"type": "message_stop"}


def _parts(block: Json) -> tuple[Json, list[Json]]:
    """A block as it begins, and what is added to it."""
    if block["type"] == "thinking":
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": part} for part in pieces(block["text"])]
    arguments = [{"type": "input_json_delta", "partial_json": part} for part in pieces(json.dumps(block["input"]))]
    return {**block, "input": {}}, arguments


def _refused(fault: Fault) -> Reply:
    return as_json({"type": "error", "error": {"type": fault.kind, "message": fault.message}}, fault.status)

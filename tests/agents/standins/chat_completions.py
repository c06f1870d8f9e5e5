"""A stand-in for OpenAI's chat completions, streaming or not: https://platform.openai.com/docs/api-reference/chat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tests.agents.standins.base import (
    Call,
    Fault,
    Json,
    Reply,
    Request,
    Seen,
    StandIn,
    Turn,
    as_json,
    call_id,
    pieces,
    turn_of,
)


@dataclass
class ChatCompletionsStandIn(StandIn):
    """Serves `POST /v1/chat/completions`; a program's base URL is `url + "/v1"`."""

    def answer(self, request: Request) -> Reply:
        """A turn of the script."""
        if request.method != "POST" or not request.path.endswith("/chat/completions"):
            return _refused(Fault(404, "not_found_error", f"no such place: {request.method} {request.path}"))
        step, number = self.step(find_availability(request.body) if request.body.get("tools") else None)
        return _refused(step) if isinstance(step, Fault) else self._reply(request.body, step, number)

    def _reply(self, body: Json, turn: Turn, number: int) -> Reply:
        reply = next(self.numbers)
        head = {"id": f"chatcmpl-{reply:06d}", "created": 1, "model": body["model"]}
        calls = [_call(call, call_id(f"call_{reply:06d}", number, index)) for index, call in enumerate(turn.calls)]
        finish = "tool_calls" if calls else "stop"
        if body.get("stream"):
            head["object"] = "chat.completion.chunk"
            return Reply(_frames(head, turn, calls, finish), content_type="text/event-stream")
        message: Json = {"role": "assistant", "content": turn.text or None}
        message |= {"tool_calls": calls} if calls else {}
        message |= {"reasoning_content": turn.reasoning} if turn.reasoning else {}
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        return as_json({**head, "object": "chat.completion", "choices": [choice], "usage": _usage(turn)})


def find_availability(body: Json) -> Seen:
    """What a request shows. The names of the calls in it say how many turns the model has had."""
    messages: list[Json] = body["messages"]
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    turn = 1 + max(map(turn_of, calls), default=-1)
    latest = {call for call in calls if turn_of(call) == turn - 1}
    answers = [message for message in messages if message["role"] == "tool"]
    return Seen(
        turn=turn,
        prompt="\n".join(_text(message["content"]) for message in messages if message["role"] == "user"),
        tools={tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in body["tools"]},
        results=tuple(_text(answer["content"]) for answer in answers if answer["tool_call_id"] in latest),
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    assert isinstance(content, list)
    return "\n".join(part["text"] for part in content if "text" in part)


def _call(call: Call, identifier: str) -> Json:
    return {
        "id": identifier,
        "type": "function",
        "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
    }


def _usage(turn: Turn) -> Json:
    return {
        "prompt_tokens": turn.input_tokens,
        "prompt_tokens_details": {"cached_tokens": turn.cached_tokens},
        "completion_tokens": turn.output_tokens,
        "completion_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": turn.input_tokens + turn.output_tokens,
    }


def _frames(head: Json, turn: Turn, calls: list[Json], finish: str) -> Iterator[bytes]:
    """Server-sent events without names, `[DONE]` at the end."""
    for data in _stream(head, turn, calls, finish):
        yield f"data: {json.dumps(data)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _stream(head: Json, turn: Turn, calls: list[Json], finish: str) -> Iterator[Json]:
    def chunk(delta: Json, reason: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield chunk({"role": "assistant", "content": ""})
    if turn.reasoning:
        yield chunk({"reasoning_content": turn.reasoning})
    for piece in pieces(turn.text):
        yield chunk({"content": piece})
    for index, call in enumerate(calls):
        yield chunk({"tool_calls": [{**call, "index": index}]})
    yield chunk({}, finish)
    yield {**head, "choices": [], "usage": _usage(turn)}


def _refused(fault: Fault) -> Reply:
    content = {"message": fault.message, "type": fault.kind, "param": None, "code": fault.kind}
    return as_json({"error": content}, fault.status)

"""A stand-in for OpenAI's Responses API, streaming: https://platform.openai.com/docs/api-reference/responses-streaming."""

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
    as_events,
    as_json,
    call_id,
    pieces,
    turn_of,
)

PATCH = "patch"
"""the one argument of a tool that takes plain text instead of JSON (`custom` in the protocol)"""


@dataclass
class OpenAIResponsesStandIn(StandIn):
    """Serves `POST /v1/responses`; a program's base URL is `url + "/v1"`."""

    def answer(self, request: Request) -> Reply:
        """A turn of the script."""
        path = request.path.partition("?")[0]
        if "upgrade" in request.headers:
            return _refused(Fault(426, "upgrade_required", "no WebSocket here, ask over HTTP"))
        if request.method == "GET" and path == "/v1/models":
            return as_json({"object": "list", "data": []})
        if request.method != "POST" or path != "/v1/responses":
            return _refused(Fault(404, "not_found", f"no such place: {request.method} {path}"))
        step, number = self.step(find_availability(request.body) if tools_of(request.body) else None)
        return _refused(step) if isinstance(step, Fault) else self._reply(request.body, step, number)

    def _reply(self, body: Json, turn: Turn, number: int) -> Reply:
        reply = next(self.numbers)
        custom = {tool["name"] for tool in tools_of(body) if tool["type"] == "custom"}
        items = list(_items(turn, reply, number, custom))
        response = {"id": f"resp_{reply:06d}", "object": "response", "model": body["model"], "status": "completed"}
        response |= {"output": items, "usage": _usage(turn)}
        if not body.get("stream"):
            return as_json(response)
        return as_events((str(data["type"]), data) for data in _numbered(_stream(response, items)))


def tools_of(body: Json) -> list[Json]:
    """Every tool that is offered: in `tools`, or by an item of the input, there in namespaces."""
    items = body.get("input", [])
    added = [item["tools"] for item in items if isinstance(item, dict) and item.get("type") == "additional_tools"]
    offered = [tool for tools in (body.get("tools") or [], *added) for tool in tools]
    return [inner for tool in offered for inner in (tool["tools"] if tool["type"] == "namespace" else [tool])]


def find_availability(body: Json) -> Seen:
    """What a request shows. The names of the calls in it say how many turns the model has had."""
    items: list[Json] = body["input"] if isinstance(body["input"], list) else []
    calls = [item for item in items if item.get("type") in ("function_call", "custom_tool_call")]
    turn = 1 + max((turn_of(call["call_id"]) for call in calls), default=-1)
    latest = {call["call_id"] for call in calls if turn_of(call["call_id"]) == turn - 1}
    users = [item for item in items if item.get("type", "message") == "message" and item["role"] == "user"]
    return Seen(
        turn=turn,
        prompt="\n".join(_text(item["content"]) for item in users),
        tools={tool["name"]: tool.get("parameters", {}) for tool in tools_of(body) if "name" in tool},
        results=tuple(
            _text(item["output"])
            for item in items
            if item.get("type") in ("function_call_output", "custom_tool_call_output") and item["call_id"] in latest
        ),
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    assert isinstance(content, list)
    return "\n".join(part["text"] for part in content if "text" in part)


def _items(turn: Turn, reply: int, number: int, custom: set[str]) -> Iterator[Json]:
    if turn.reasoning:
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        yield {"type": "reasoning", "id": f"rs_{reply:06d}", "summary": summary, "encrypted_content": "c2lnbmVk"}
    if turn.text or not turn.calls:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        item = {"type": "message", "id": f"msg_{reply:06d}", "role": "assistant", "content": content}
        yield {**item, "status": "completed"}
    for index, call in enumerate(turn.calls):
        yield _call(call, call_id(f"call_{reply:06d}", number, index), f"fc_{reply:06d}_{index}", custom)


def _call(call: Call, identifier: str, item: str, custom: set[str]) -> Json:
    head = {"id": item, "call_id": identifier, "name": call.tool, "status": "completed"}
    if call.tool in custom:
        return {**head, "type": "custom_tool_call", "input": call.arguments[PATCH]}
    return {**head, "type": "function_call", "arguments": json.dumps(call.arguments)}


def _usage(turn: Turn) -> Json:
    return {
        "input_tokens": turn.input_tokens,
        "input_tokens_details": {"cached_tokens": turn.cached_tokens},
        "output_tokens": turn.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": turn.input_tokens + turn.output_tokens,
    }


def _numbered(events: Iterator[Json]) -> Iterator[Json]:
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


def _stream(response: Json, items: list[Json]) -> Iterator[Json]:
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": [], "usage": None}}
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress"}}
        if item["type"] == "message":
            place = {"item_id": item["id"], "output_index": index, "content_index": 0}
            for piece in pieces(item["content"][0]["text"]):
                yield {"type": "response.output_text.delta", **place, "delta": piece}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}


def _refused(fault: Fault) -> Reply:
    content = {"message": fault.message, "type": fault.kind, "param": None, "code": fault.kind}
    return as_json({"error": content}, fault.status)

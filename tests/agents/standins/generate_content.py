"""A stand-in for the Gemini API, `generateContent` and its stream: https://ai.google.dev/api/generate-content."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
    pieces,
)


@dataclass
class GenerateContentStandIn(StandIn):
    """Serves `POST /v1beta/models/MODEL:generateContent` and `:streamGenerateContent`; the base URL is `url`."""

    def answer(self, request: Request) -> Reply:
        """A turn of the script."""
        place, _, method = request.path.partition("?")[0].rpartition(":")
        if method == "countTokens":
            return as_json({"totalTokens": 10})
        if request.method != "POST" or method not in ("generateContent", "streamGenerateContent"):
            return _refused(Fault(404, "NOT_FOUND", f"no such place: {request.method} {request.path}"))
        step, _ = self.step(find_availability(request.body) if request.body.get("tools") else None, aside="{}")
        if isinstance(step, Fault):
            return _refused(step)
        model = place.rpartition("/")[2]
        if method == "generateContent":
            return as_json(_response(list(_parts(step)), step, model))
        return as_events(("", chunk) for chunk in _stream(step, model))


def find_availability(body: Json) -> Seen:
    """What a request shows. Calls have no names of their own here: each content with calls is a turn."""
    contents: list[Json] = body["contents"]
    judge_pool = [index for index, content in enumerate(contents) if any("functionCall" in p for p in content["parts"])]
    after = contents[judge_pool[-1] + 1 :] if judge_pool else []
    declared = [tool for tools in body["tools"] for tool in tools.get("functionDeclarations", ())]
    return Seen(
        turn=len(judge_pool),
        prompt="\n".join(
            part["text"]
            for content in contents
            if content["role"] == "user"
            for part in content["parts"]
            if "text" in part
        ),
        tools={tool["name"]: tool.get("parametersJsonSchema") or tool.get("parameters") or {} for tool in declared},
        results=tuple(
            str(part["functionResponse"]["response"])
            for content in after
            for part in content["parts"]
            if "functionResponse" in part
        ),
    )


def _parts(turn: Turn) -> Iterator[Json]:
    if turn.reasoning:
        yield {"text": turn.reasoning, "thought": True}
    for piece in pieces(turn.text):
        yield {"text": piece}
    for call in turn.calls:
        yield {"functionCall": {"name": call.tool, "args": dict(call.arguments)}}


def _response(parts: list[Json], turn: Turn, model: str) -> Json:
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, "finishReason": "STOP"}
    return {"candidates": [candidate], "modelVersion": model, "usageMetadata": _usage(turn)}


def _stream(turn: Turn, model: str) -> Iterator[Json]:
    """A part each; the last one ends the turn and has the usage."""
    parts = list(_parts(turn))
    for part in parts[:-1]:
        yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "modelVersion": model}
    yield _response(parts[-1:], turn, model)


def _usage(turn: Turn) -> Json:
    """A quarter of the output counts as thoughts where there are some, as the API counts them apart."""
    thoughts = turn.output_tokens // 4 if turn.reasoning else 0
    return {
        "promptTokenCount": turn.input_tokens,
        "cachedContentTokenCount": turn.cached_tokens,
        "candidatesTokenCount": turn.output_tokens - thoughts,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": turn.input_tokens + turn.output_tokens,
    }


def _refused(fault: Fault) -> Reply:
    return as_json({"error": {"code": fault.status, "message": fault.message, "status": fault.kind}}, fault.status)

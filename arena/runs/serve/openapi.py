"""The OpenAPI description of the server, made from the types that requests and answers are decoded with."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

import arena
from arena.runs.serve import requests
from arena.runs.serve.views import EpisodeView, Final, ServedTask, ServerView, Step, TaskView

_VERSION = "3.1.0"
_ERRORS = {
    "400": "not the JSON that is expected",
    "401": "wrong or no token",
    "404": "no such task or episode",
    "409": "the episode is finished, or a limit is reached and only finish is left",
    "413": "the body or the kernel is too large",
    "429": "as many evaluations wait as may; Retry-After holds seconds",
    "503": "no verdict, since the judge fails with the baseline too: not counted, may be repeated",
}
_OPERATIONS: tuple[tuple[str, str, str, type | None, Any], ...] = (
    ("get", "/status", "What the server is doing.", None, ServerView),
    ("get", "/tasks", "Tasks that are served; `?split=train` or `evaluation`.", None, list[ServedTask]),
    ("get", "/tasks/{task}", "One task, as an agent sees it.", None, TaskView),
    ("post", "/episodes", "Begin an episode.", requests.BeginRequest, EpisodeView),
    ("get", "/episodes/{episode}/status", "Where an episode is.", None, EpisodeView),
    ("post", "/episodes/{episode}/evaluate", "Evaluate a kernel on seen cases.", requests.StepRequest, Step),
    ("post", "/episodes/{episode}/finish", "Get the final verdict.", requests.FinishRequest, Final),
    ("post", "/batch", "Evaluate kernels of several episodes.", requests.BatchRequest, list[requests.BatchAnswer]),
)


@cache
def description() -> dict[str, Any]:
    """Return the description, an object that can be encoded as JSON."""
    kinds = [kind for *_, body, answer in _OPERATIONS for kind in (body, answer) if kind is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    of = dict(zip(map(str, kinds), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for method, path, summary, body, answer in _OPERATIONS:
        operation: dict[str, Any] = {"summary": summary, "responses": _responses(of[str(answer)])}
        if body is not None:
            operation["requestBody"] = {"content": {"application/json": {"schema": of[str(body)]}}}
        named = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        if named:
            operation["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in named
            ]
        paths.setdefault(path, {})[method] = operation
    return {
        "openapi": _VERSION,
        "info": {"title": "Unseen Arena", "version": arena.__version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _responses(answer: Any) -> dict[str, Any]:
    error = {
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"type": "string"}},
    }
    failures = {
        code: {"description": why, "content": {"application/json": {"schema": error}}} for code, why in _ERRORS.items()
    }
    return {"200": {"description": "done", "content": {"application/json": {"schema": answer}}}, **failures}

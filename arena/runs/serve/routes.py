"""The HTTP interface of episodes: requests in, `Episodes` called in a thread, answers out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

import arena
from arena.errors import StorageError
from arena.processes.http_server import Answer, Refused, body_of, kernel_bytes
from arena.runs.serve import requests
from arena.runs.serve.episode import EpisodeOver, NoVerdict
from arena.runs.serve.episodes import Busy, Episodes, UnknownName
from arena.runs.serve.requests import (
    MOST_BATCH,
    BatchAnswer,
    BatchItem,
    BatchRequest,
    BeginRequest,
    FinishRequest,
    StepRequest,
)
from arena.runs.serve.views import EpisodeView, Final, ServedTask, ServerView, Step, TaskView
from arena.task.corpus.split import TaskSplit

if TYPE_CHECKING:
    from anyio import CapacityLimiter
    from starlette.requests import Request


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


T = TypeVar("T")
VERDICTS = frozenset({("POST", "/episodes/{episode}/finish")})
"""routes whose answers count held-out cases: not for agents"""


class Routes:
    """Answers for each method and path of a server."""

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes
        self._threads: CapacityLimiter | None = None

    def table(self) -> Mapping[tuple[str, str], Answer]:
        """Return what `EvaluationServer` serves."""
        return {
            ("GET", "/openapi.json"): self._describe,
            ("GET", "/status"): self._overview,
            ("GET", "/tasks"): self._tasks,
            ("GET", "/tasks/{task:path}"): self._task,
            ("POST", "/episodes"): self._begin,
            ("GET", "/episodes/{episode}/status"): self._status,
            ("POST", "/episodes/{episode}/evaluate"): self._evaluate,
            ("POST", "/episodes/{episode}/finish"): self._finish,
            ("POST", "/batch"): self._batch,
        }

    async def _describe(self, request: Request) -> object:
        return description()

    async def _overview(self, request: Request) -> object:
        return self._episodes.overview()

    async def _tasks(self, request: Request) -> object:
        split = request.query_params.get("split", TaskSplit.ALL)
        if split not in list(TaskSplit):
            raise Refused(HTTPStatus.BAD_REQUEST, f"split: expected one of {', '.join(TaskSplit)}, not {split[:40]!r}")
        return self._episodes.tasks(TaskSplit(split))

    async def _task(self, request: Request) -> object:
        return await self._done(self._episodes.task, request.path_params["task"])

    async def _begin(self, request: Request) -> object:
        asked = await body_of(request, BeginRequest)
        return await self._done(self._episodes.begin, asked.task, asked.agent, asked.seed, asked.effort)

    async def _status(self, request: Request) -> object:
        return await self._done(self._episodes.status, request.path_params["episode"])

    async def _evaluate(self, request: Request) -> object:
        asked = await body_of(request, StepRequest)
        kernel = kernel_bytes(asked.kernel)
        return await self._done(self._episodes.evaluate, request.path_params["episode"], kernel, asked.profile)

    async def _finish(self, request: Request) -> object:
        asked = await body_of(request, FinishRequest, FinishRequest())
        kernel = None if asked.kernel is None else kernel_bytes(asked.kernel)
        return await self._done(self._episodes.finish, request.path_params["episode"], kernel)

    async def _batch(self, request: Request) -> object:
        asked = await body_of(request, BatchRequest)
        return await asyncio.gather(*(self._item(item) for item in asked.items))

    async def _item(self, item: BatchItem) -> BatchAnswer:
        try:
            kernel = kernel_bytes(item.kernel)
            return BatchAnswer(200, await self._done(self._episodes.evaluate, item.episode, kernel, False))
        except Refused as problem:
            return BatchAnswer(problem.status, {"error": str(problem)})

    async def _done(self, call: Callable[..., T], *arguments: object) -> T:
        """Call in a thread; what the episodes raise becomes an error with its status."""
        from anyio import CapacityLimiter
        from anyio.to_thread import run_sync

        self._threads = self._threads or CapacityLimiter(self._episodes.settings.capacity + MOST_BATCH)
        try:
            return await run_sync(partial(call, *arguments), abandon_on_cancel=True, limiter=self._threads)
        except UnknownName as problem:
            raise Refused(HTTPStatus.NOT_FOUND, str(problem)) from None
        except EpisodeOver as problem:
            raise Refused(HTTPStatus.CONFLICT, str(problem)) from None
        except Busy as problem:
            hint = {"Retry-After": str(problem.retry_after_s)}
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, str(problem), hint) from None
        except NoVerdict as problem:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(problem)) from None
        except StorageError as problem:
            raise Refused(HTTPStatus.INSUFFICIENT_STORAGE, str(problem)) from None

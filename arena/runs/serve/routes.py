"""The HTTP interface of episodes: requests in, `Episodes` called in a thread, answers out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from arena.errors import StorageError
from arena.processes.http_server import Answer, Refused, body_of, kernel_bytes
from arena.runs.serve import openapi
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
from arena.task.corpus.split import TaskSplit

if TYPE_CHECKING:
    from anyio import CapacityLimiter
    from starlette.requests import Request

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
        return openapi.description()

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

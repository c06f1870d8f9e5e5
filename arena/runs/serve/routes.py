"""The HTTP interface of episodes: requests in, `Episodes` called in a thread, answers out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

import arena
from arena.errors import StorageError
from arena.processes.http_server import HEAD_S, Answer, EvaluationServer, Refused, body_of, kernel_bytes
from arena.runs.serve import requests
from arena.runs.serve.clients import Caller, OverLimit, TooMany
from arena.runs.serve.episode import EpisodeOver, NoVerdict
from arena.runs.serve.episodes import Busy, Episodes, IsGone, UnknownName
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
    "403": "a limit of the client is used up, or the route is not for agents",
    "404": "no such task, or no such episode of this client",
    "409": "the episode is finished, or a limit is reached and only finish is left",
    "413": "the body or the kernel is too large",
    "429": "as many requests or evaluations at once as may be; Retry-After holds seconds",
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
Handler = Callable[["Request", Caller], Awaitable[object]]
_SOON_S = 1
"""after which a request that was one too many may be made again"""


class Routes:
    """Answers for each method and path of a server."""

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes
        self._threads: dict[str, CapacityLimiter] = {}

    def table(self) -> Mapping[tuple[str, str], Answer]:
        """Return what `EvaluationServer` serves. Its `holders` are `Clients.callers`."""
        handlers: dict[tuple[str, str], Handler] = {
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
        return {route: self._admitted(handler) for route, handler in handlers.items()}

    def _admitted(self, handler: Handler) -> Answer:
        """Answer as many requests of a client at once as it may make, the wait for a body included."""

        async def answer(request: Request) -> object:
            clients = self._episodes.clients
            caller: Caller = request.state.holder or Caller(clients.known[0])
            try:
                with clients.held(caller.client, "requests"):
                    return await handler(request, caller)
            except TooMany as problem:
                raise _later(problem, _SOON_S) from None

        return answer

    async def _describe(self, request: Request, caller: Caller) -> object:
        return description()

    async def _overview(self, request: Request, caller: Caller) -> object:
        return self._episodes.overview(caller)

    async def _tasks(self, request: Request, caller: Caller) -> object:
        split = request.query_params.get("split", TaskSplit.ALL)
        if split not in list(TaskSplit):
            raise Refused(HTTPStatus.BAD_REQUEST, f"split: expected one of {', '.join(TaskSplit)}, not {split[:40]!r}")
        return self._episodes.tasks(TaskSplit(split))

    async def _task(self, request: Request, caller: Caller) -> object:
        return await self._done(caller, self._episodes.task, request.path_params["task"])

    async def _begin(self, request: Request, caller: Caller) -> object:
        asked = await body_of(request, BeginRequest)
        return await self._done(caller, self._episodes.begin, caller, asked.task, asked.agent, asked.seed, asked.effort)

    async def _status(self, request: Request, caller: Caller) -> object:
        return await self._done(caller, self._episodes.status, caller, request.path_params["episode"])

    async def _evaluate(self, request: Request, caller: Caller) -> object:
        asked = await body_of(request, StepRequest)
        kernel, episode = kernel_bytes(asked.kernel), request.path_params["episode"]
        async with _listening(request) as is_gone:
            return await self._done(caller, self._episodes.evaluate, caller, episode, kernel, asked.profile, is_gone)

    async def _finish(self, request: Request, caller: Caller) -> object:
        if caller.is_agent:
            raise Refused(HTTPStatus.FORBIDDEN, "`agent_token` does not open this: a verdict counts held-out cases")
        asked = await body_of(request, FinishRequest, FinishRequest())
        kernel = None if asked.kernel is None else kernel_bytes(asked.kernel)
        async with _listening(request) as is_gone:
            return await self._done(
                caller, self._episodes.finish, caller, request.path_params["episode"], kernel, is_gone
            )

    async def _batch(self, request: Request, caller: Caller) -> object:
        asked = await body_of(request, BatchRequest)
        async with _listening(request) as is_gone:
            return await asyncio.gather(*(self._item(caller, item, is_gone) for item in asked.items))

    async def _item(self, caller: Caller, item: BatchItem, is_gone: IsGone) -> BatchAnswer:
        try:
            kernel = kernel_bytes(item.kernel)
            step = await self._done(caller, self._episodes.evaluate, caller, item.episode, kernel, False, is_gone)
            return BatchAnswer(200, step)
        except Refused as problem:
            return BatchAnswer(problem.status, {"error": str(problem)})

    async def _done(self, caller: Caller, call: Callable[..., T], *arguments: object) -> T:
        """Call in one of the client's threads; what the episodes raise becomes an error with its status."""
        from anyio import CapacityLimiter
        from anyio.to_thread import run_sync

        client = caller.client
        threads = self._threads.setdefault(client.name, CapacityLimiter(client.requests + MOST_BATCH))
        try:
            return await run_sync(partial(call, *arguments), abandon_on_cancel=True, limiter=threads)
        except UnknownName as problem:
            raise Refused(HTTPStatus.NOT_FOUND, str(problem)) from None
        except OverLimit as problem:
            raise Refused(HTTPStatus.FORBIDDEN, str(problem)) from None
        except EpisodeOver as problem:
            raise Refused(HTTPStatus.CONFLICT, str(problem)) from None
        except Busy as problem:
            raise _later(problem, problem.retry_after_s) from None
        except TooMany as problem:
            raise _later(problem, _SOON_S) from None
        except NoVerdict as problem:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, str(problem)) from None
        except StorageError as problem:
            raise Refused(HTTPStatus.INSUFFICIENT_STORAGE, str(problem)) from None


def _later(problem: Exception, after_s: int) -> Refused:
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, str(problem), {"Retry-After": str(after_s)})


@asynccontextmanager
async def _listening(request: Request) -> AsyncIterator[IsGone]:
    """Notice when the peer of a request, whose body was read, closes its connection."""
    gone = threading.Event()

    async def notice() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        gone.set()

    listener = asyncio.ensure_future(notice())
    try:
        yield gone.is_set
    finally:
        listener.cancel()


class EpisodeServer(EvaluationServer):
    """Serves episodes to the holders of clients' tokens; at a Unix socket, as the first client, to whoever may open it.

    `token` and `agent_token` are those of the first client; empty at a Unix socket.
    """

    def __init__(self, episodes: Episodes, *, path: Path | None = None, port: int = 0, head_s: float = HEAD_S) -> None:
        holders = None if path else episodes.clients.callers
        super().__init__(
            Routes(episodes).table(),
            path=path,
            port=port,
            holders=holders,
            head_s=head_s,
            is_busy=episodes.clients.is_busy,
        )
        first = episodes.clients.known[0]
        self.token, self.agent_token = ("", "") if path else (first.token, first.agent_token or "")

"""Clients of `arena serve`, blocking and asynchronous: the same calls, the same answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from arena.api.arguments import effort_level
from arena.errors import ArenaError, NotServed
from arena.runs.serve.requests import BatchAnswer, BatchItem, BatchRequest, BeginRequest, FinishRequest, StepRequest
from arena.runs.serve.views import EpisodeView, Final, ServedTask, ServerView, Step, TaskView

_HOST = "http://arena"
_PATIENCE_S = 7200.0
"""an evaluation may wait for others"""


class _Call(msgspec.Struct, frozen=True):
    """One request: method, path, body and the type of its answer."""

    method: str
    path: str
    body: bytes | None
    answer: Any


def _call(path: str, answer: Any, body: object = None) -> _Call:
    return _Call("GET" if body is None else "POST", path, None if body is None else msgspec.json.encode(body), answer)


def _read(call: _Call, status: int, headers: Mapping[str, str], content: bytes) -> Any:
    """Return the answer; raises `NotServed` where it is an error."""
    if status == 200:
        return msgspec.json.decode(content, type=call.answer)
    try:
        reason = str(msgspec.json.decode(content, type=dict[str, str])["error"])
    except (msgspec.MsgspecError, KeyError):
        reason = f"an answer that is not of arena serve: {content[:200]!r}"
    wait = headers.get("retry-after", "")
    raise NotServed(f"{status}: {reason}", status, float(wait) if wait.isdecimal() else None)


def _where(address: str | Path) -> tuple[str, str | None]:
    """Return the base address, and the socket where it is one."""
    text = str(address)
    return (text, None) if text.startswith(("http://", "https://")) else (_HOST, text)


class _Calls(ABC):
    """The calls of both clients; what they return, an `AsyncClient` returns as a coroutine."""

    @abstractmethod
    def _ask(self, call: _Call) -> Any:
        """Send one request."""

    def status(self) -> Any:
        """Return what the server is doing, a `ServerView`."""
        return self._ask(_call("/status", ServerView))

    def tasks(self, split: str = "all") -> Any:
        """Return the served tasks of a split (`all`, `train` or `evaluation`), a list of `ServedTask`."""
        return self._ask(_call(f"/tasks?split={split}", list[ServedTask]))

    def task(self, name: str) -> Any:
        """Return one task as an agent sees it, a `TaskView`."""
        return self._ask(_call(f"/tasks/{name}", TaskView))

    def begin(self, task: str, *, seed: int | None = None, effort: str | None = None, agent: str = "client") -> Any:
        """Begin an episode, or return the one that this agent began with this task and seed, an `EpisodeView`."""
        chosen = effort_level(effort)
        return self._ask(_call("/episodes", EpisodeView, BeginRequest(task, seed, chosen, agent)))

    def episode(self, episode: str) -> Any:
        """Return where an episode is, an `EpisodeView`."""
        return self._ask(_call(f"/episodes/{episode}/status", EpisodeView))

    def evaluate(self, episode: str, kernel: str, *, profile: bool = False) -> Any:
        """Evaluate a kernel on the seen cases; returns a `Step`."""
        return self._ask(_call(f"/episodes/{episode}/evaluate", Step, StepRequest(kernel, profile)))

    def batch(self, items: Sequence[tuple[str, str]]) -> Any:
        """Evaluate kernels of several episodes, each (episode, kernel); returns a list of `BatchAnswer` in order."""
        return self._ask(_call("/batch", list[BatchAnswer], BatchRequest([BatchItem(*item) for item in items])))

    def finish(self, episode: str, kernel: str | None = None) -> Any:
        """Get the final verdict on this kernel, or on the best one evaluated, a `Final`."""
        return self._ask(_call(f"/episodes/{episode}/finish", Final, FinishRequest(kernel)))


class Client(_Calls):
    """A client of `arena serve`; a context manager. Needs no PyTorch.

    Args:
        address: `http://127.0.0.1:PORT` or the path of a socket, as the server prints it.
        token: as the server prints it; empty for a socket.

    Raises:
        NotServed: from every call, where the server answers with an error; `status` and `retry_after_s` say which.
        ArenaError: where it cannot be reached.

    Examples:
        >>> from arena import Client
        >>> with Client("http://127.0.0.1:9") as client:
        ...     client.status()
        Traceback (most recent call last):
        arena.errors.ArenaError: http://127.0.0.1:9: [Errno 111] Connection refused
    """

    def __init__(self, address: str | Path, token: str = "") -> None:
        import httpx2

        base, socket = _where(address)
        transport = httpx2.HTTPTransport(uds=socket) if socket else None
        self._http = httpx2.Client(transport=transport, **_settings(base, token))

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its connections."""
        self._http.close()

    def _ask(self, call: _Call) -> Any:
        import httpx2

        try:
            response = self._http.request(call.method, call.path, content=call.body)
        except httpx2.HTTPError as problem:
            raise ArenaError(f"{self._http.base_url}: {problem}") from None
        return _read(call, response.status_code, response.headers, response.content)


class AsyncClient(_Calls):
    """The same for asyncio: an asynchronous context manager, every call a coroutine.

    Args:
        address: as for `Client`.
        token: as for `Client`.
        connections: requests at once; more wait.

    Raises:
        NotServed: from every call, where the server answers with an error.
        ArenaError: where it cannot be reached.

    Examples:
        >>> import asyncio
        >>> from arena import AsyncClient
        >>> async def device(address):
        ...     async with AsyncClient(address) as client:
        ...         return (await client.status()).device
        >>> asyncio.run(device("http://127.0.0.1:9"))
        Traceback (most recent call last):
        arena.errors.ArenaError: http://127.0.0.1:9: All connection attempts failed
    """

    def __init__(self, address: str | Path, token: str = "", connections: int = 256) -> None:
        import httpx2

        base, socket = _where(address)
        limits = httpx2.Limits(max_connections=connections)
        transport = httpx2.AsyncHTTPTransport(uds=socket, limits=limits) if socket else None
        self._http = httpx2.AsyncClient(transport=transport, limits=limits, **_settings(base, token))

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def _ask(self, call: _Call) -> Any:
        import httpx2

        try:
            response = await self._http.request(call.method, call.path, content=call.body)
        except httpx2.HTTPError as problem:
            raise ArenaError(f"{self._http.base_url}: {problem}") from None
        return _read(call, response.status_code, response.headers, response.content)


def _settings(base: str, token: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return {"base_url": base, "headers": headers, "timeout": _PATIENCE_S, "trust_env": False}

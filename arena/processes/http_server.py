"""The HTTP server of the project: routes behind a Unix socket or a loopback port, JSON in, JSON out.

Used by `arena serve` and by the socket behind `./evaluate`. Peers are untrusted: heads, bodies and answers have time
limits, bodies a size, connections that have sent no request a number. A connection carries one request.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import resource
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import msgspec

from arena.errors import UsageError
from arena.processes.admission import Admission

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from uvicorn import Config, Server
    from uvicorn.protocols.http.h11_impl import H11Protocol

LOOPBACK = "127.0.0.1"
MAX_BODY_BYTES = 4 << 20
MAX_KERNEL_BYTES = 1 << 20
MAX_SILENT = 256
HEAD_S = 2.0
_ANSWER_S = 60.0
_MOST_OPEN = 2048
_BACKLOG = 4096
_SILENT_S = 0.2
_CLOSE_S = 1.0
_MAX_PATH_BYTES = 107
_Body = TypeVar("_Body")
Answer = Callable[["Request"], Awaitable[object]]
"""answers a request with what can be encoded as JSON; raises `Refused`"""


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class EvaluationServer:
    """Answers in a thread of its own while it is open; a context manager.

    Args:
        routes: by method and path, such as `("POST", "/episodes/{episode}/evaluate")`.
        path: the Unix socket; None: a port of the loopback address.
        mode: of the socket's file.
        port: of the loopback address; 0: any that is free.
        holders: by token, what routes find in `request.state.holder`; without one a request is refused. Empty: nobody
            needs a token, and `holder` is None.
        head_s: how long a request's head may take.
        most_silent: connections that have sent no request; the oldest is closed for the next.
        is_busy: whether the holder of a token makes as many requests at once as it may.
    """

    def __init__(
        self,
        routes: Mapping[tuple[str, str], Answer],
        *,
        path: Path | None = None,
        mode: int = 0o600,
        port: int = 0,
        holders: Mapping[str, object] | None = None,
        head_s: float = HEAD_S,
        most_silent: int = MAX_SILENT,
        is_busy: Callable[[str], bool] = lambda token: False,
    ) -> None:
        self._holders, self._most_silent, self._is_busy = dict(holders or {}), most_silent, is_busy
        self._routes, self._path, self._mode, self._port, self._head_s = routes, path, mode, port, head_s

    @property
    def address(self) -> str:
        """`http://127.0.0.1:PORT`, or the path of the socket."""
        return str(self._path) if self._path else f"http://{LOOPBACK}:{self._port}"

    def __enter__(self) -> Self:
        """Listen. Raises `UsageError` where that is not possible."""
        import uvicorn

        most_open = min(_MOST_OPEN, _raised_limit_of_descriptors() // 2)
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # malformed requests are no news
        listener = self._listen()
        self._config = uvicorn.Config(
            _application(self._routes, self._holders),
            http=_connections(self._head_s, self._most_silent, most_open),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=[("connection", "close")],
            timeout_graceful_shutdown=0,
        )
        admission = Admission(
            listener,
            self._holders,
            self._is_busy,
            most_silent=self._most_silent,
            most_open=most_open,
            silent_s=self._head_s,
        )
        self._server = _server(self._config, admission)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), name="server", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close every connection; evaluations that run are not waited for."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(_CLOSE_S)
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _listen(self) -> socket.socket:
        if self._path is not None and len(str(self._path).encode()) > _MAX_PATH_BYTES:
            raise UsageError(f"{self._path}: too long for a Unix socket; set TMPDIR to a shorter path")
        listener = socket.socket(socket.AF_UNIX if self._path else socket.AF_INET, socket.SOCK_STREAM)
        try:
            if self._path is None:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((LOOPBACK, self._port))
            else:
                os.fchmod(listener.fileno(), self._mode)  # Linux gives the file no more than this from its first moment
                listener.bind(str(self._path))
                self._path.chmod(self._mode)  # and less where the umask says so
            listener.listen(_BACKLOG)
        except OSError as problem:
            listener.close()
            raise UsageError(f"cannot listen at {self.address}: {problem.strerror}") from None
        if self._path is None:
            self._port = listener.getsockname()[1]
        return listener


def _raised_limit_of_descriptors() -> int:
    """Let this process have as many descriptors as it may: each connection is one. Returns how many."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


async def body_of(request: Request, kind: type[_Body], default: _Body | None = None, within_s: float = 30.0) -> _Body:
    """Return the body as what it has to be; `default` where there is none. Raises `Refused`."""
    from starlette.requests import ClientDisconnect

    data = bytearray()
    try:
        async with asyncio.timeout(within_s):
            async for chunk in request.stream():
                data += chunk
                if len(data) > MAX_BODY_BYTES:
                    raise Refused(
                        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {MAX_BODY_BYTES >> 20} MiB"
                    )
    except TimeoutError:
        raise Refused(HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {within_s:g} s") from None
    except ClientDisconnect:
        raise Refused(HTTPStatus.BAD_REQUEST, "the connection was closed before the end of the body") from None
    if not data and default is not None:
        return default
    try:
        return msgspec.json.decode(bytes(data), type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise Refused(HTTPStatus.BAD_REQUEST, f"not the JSON that is expected here: {problem}") from None


def kernel_bytes(kernel: str) -> bytes:
    """Return the bytes of a kernel's text. Raises `Refused` where it is no text or too large."""
    try:
        data = kernel.encode()
    except UnicodeEncodeError:
        raise Refused(HTTPStatus.BAD_REQUEST, "`kernel` holds characters that are no text") from None
    if len(data) > MAX_KERNEL_BYTES:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the kernel may have {MAX_KERNEL_BYTES} bytes")
    return data


def _application(routes: Mapping[tuple[str, str], Answer], holders: Mapping[str, object]) -> Starlette:
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def unknown(request: Request, problem: Exception) -> Response:
        status = HTTPStatus(getattr(problem, "status_code", 500))
        there = ", ".join(f"{method} {path}" for method, path in routes)
        return _reply({"error": f"{status.phrase}; there is {there}"}, status)

    made = [Route(route[1], _guarded(answer, holders), methods=[route[0]]) for route, answer in routes.items()]
    return Starlette(routes=made, exception_handlers={404: unknown, 405: unknown})


def _guarded(answer: Answer, holders: Mapping[str, object]) -> Callable[[Request], Awaitable[Response]]:
    """Answer those who have one of the tokens; what goes wrong becomes an error with a message."""

    async def respond(request: Request) -> Response:
        try:
            request.state.holder = _holder(request, holders)
            return _reply(await answer(request))
        except Refused as problem:
            return _reply({"error": str(problem)}, problem.status, problem.headers)
        except asyncio.CancelledError:
            return _reply({"error": "the server is closed"}, HTTPStatus.SERVICE_UNAVAILABLE)
        except Exception:
            logging.getLogger(__name__).exception("%s %s", request.method, request.url.path)
            return _reply(
                {"error": "the server failed, which says nothing about the kernel; its log has more"},
                HTTPStatus.INTERNAL_SERVER_ERROR,
            )

    return respond


def _holder(request: Request, holders: Mapping[str, object]) -> object:
    """Return the holder of a request's token; every token is compared, so that time tells nothing. Raises `Refused`."""
    if not holders:
        return None
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    given = given or request.query_params.get("token", "")
    found = [
        one for token, one in holders.items() if hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())
    ]
    if not found:
        raise Refused(HTTPStatus.UNAUTHORIZED, "wrong or no token: send `Authorization: Bearer TOKEN`")
    return found[0]


def _reply(content: object, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(msgspec.json.encode(content), status, headers, "application/json")


def _server(config: Config, admission: Admission) -> Server:
    """Return uvicorn's server, whose connections come from `admission`."""
    import uvicorn

    class AdmittingServer(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=[])
            make, state, app = config.http_protocol_class, self.server_state, self.lifespan.state
            admission.open(lambda: make(config=config, server_state=state, app_state=app))  # type: ignore[call-arg]

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            admission.close()
            await super().shutdown(sockets)

    return AdmittingServer(config)


def _connections(head_s: float, most_silent: int, most_open: int) -> type[H11Protocol]:
    """Return uvicorn's protocol with limits on peers that send no request or take no answer, and on all together."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    quiet: dict[Connection, None] = {}
    """those that have sent no request yet, oldest first"""
    silent: dict[Connection, None] = {}
    """of these, those from which nothing came in `_SILENT_S`"""
    every: set[Connection] = set()

    class Connection(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            every.add(self)
            quiet[self] = None
            if len(every) > most_open:
                next(iter(quiet)).transport.abort()
            self._silence = self.loop.call_later(_SILENT_S, self._is_silent)
            self._deadline = self.loop.call_later(head_s, transport.abort)

        def _is_silent(self) -> None:
            silent[self] = None
            if len(silent) > most_silent:
                next(iter(silent)).transport.abort()

        def _is_heard(self) -> None:
            self._silence.cancel()
            quiet.pop(self, None)
            silent.pop(self, None)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None:
                self._is_heard()
                self._deadline.cancel()

        def connection_lost(self, exc: Exception | None) -> None:
            self._is_heard()
            every.discard(self)
            self._deadline.cancel()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._deadline = self.loop.call_later(_ANSWER_S, self.transport.abort)

    return Connection

"""Episodes over HTTP, on the loopback address or a Unix socket: JSON in, JSON out. The peer is untrusted."""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import socket
import socketserver
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec

from arena.errors import UsageError
from arena.model.session import KERNEL_LIMIT_BYTES
from arena.service.connections import MAX_CONNECTIONS, MAX_STRANGERS, Bounded
from arena.service.episode import EpisodeOver, Episodes, NoVerdict

LOOPBACK = "127.0.0.1"
MAX_BODY_BYTES = 4 << 20
_HEAD_S = 2.0
"""from the connection to the end of the request's head"""
_REQUEST_S = 30.0
_Body = TypeVar("_Body")


class EvaluateRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /evaluate."""

    kernel: str
    profile: bool = False


class FinishRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of POST /finish, which may be left out."""

    kernel: str | None = None


class Refused(Exception):
    """A request that is answered with an error of the client's."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class EpisodeServer:
    """Listens from the start, answers while `serve` runs. A Unix socket is guarded by its mode, TCP by `token`."""

    def __init__(self, episodes: Episodes, *, port: int = 0, path: Path | None = None) -> None:
        self.token = "" if path else secrets.token_urlsafe(24)
        self._path = path
        try:
            self._server = _UnixServer(path, episodes) if path else _TcpServer(port, episodes, self.token)
        except OSError as problem:
            raise UsageError(f"cannot listen at {path or f'{LOOPBACK}:{port}'}: {problem.strerror}") from None

    @property
    def address(self) -> str:
        """`http://127.0.0.1:PORT`, or the path of the socket."""
        return str(self._path) if self._path else f"http://{LOOPBACK}:{self._server.socket.getsockname()[1]}"

    def serve(self) -> None:
        """Answer until `stop` is called from another thread, or an exception such as an interrupt comes."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """Have `serve` return."""
        self._server.shutdown()

    def close(self) -> None:
        """Listen no more; requests that are being answered are not waited for."""
        self._server.server_close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class _TcpServer(Bounded, socketserver.TCPServer):
    allow_reuse_address = True
    request_queue_size = MAX_STRANGERS

    def __init__(self, port: int, episodes: Episodes, token: str) -> None:
        Bounded.__init__(self)
        self.episodes, self.token = episodes, token
        socketserver.TCPServer.__init__(self, (LOOPBACK, port), _Handler)


class _UnixServer(Bounded, socketserver.UnixStreamServer):
    request_queue_size = MAX_STRANGERS

    def __init__(self, path: Path, episodes: Episodes) -> None:
        Bounded.__init__(self)
        self.episodes, self.token = episodes, ""
        before = os.umask(0o177)  # for its owner alone, from the first moment
        try:
            socketserver.UnixStreamServer.__init__(self, str(path), _Handler)
        finally:
            os.umask(before)


class _Handler(BaseHTTPRequestHandler):
    """One request and its answer, always JSON."""

    server: _TcpServer | _UnixServer
    server_version, sys_version = "arena", ""
    timeout = _REQUEST_S

    def setup(self) -> None:
        """A peer that sends a byte now and then must not keep its place for ever."""
        super().setup()
        self._close_connection_after(_HEAD_S)

    def finish(self) -> None:
        """The request is over, however it ended."""
        self._deadline.cancel()
        super().finish()

    def do_GET(self) -> None:
        """GET /task."""
        self._answer({"/task": lambda: self.server.episodes.describe()})

    def do_POST(self) -> None:
        """POST /evaluate, /finish, /reset."""
        self._answer({"/evaluate": self._evaluate, "/finish": self._finish, "/reset": self._reset})

    def _answer(self, routes: dict[str, Callable[[], object]]) -> None:
        """Answer a request; what goes wrong becomes an error with a message."""
        try:
            self._admit()
            self._reply(HTTPStatus.OK, self._route(routes)())
        except Refused as problem:
            self._reply(problem.status, {"error": str(problem)})
        except EpisodeOver as problem:
            self._reply(HTTPStatus.CONFLICT, {"error": str(problem)})
        except NoVerdict as problem:
            self._reply(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(problem)})
        except OSError:
            return  # the peer is gone
        except Exception:
            logging.getLogger(__name__).exception("%s %s", self.command, urlsplit(self.path).path)
            self._reply(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "the server failed; what it printed says why"})

    def _admit(self) -> None:
        """Only those who were given the token, and as many as there is room for; they have time for a body."""
        expected = self.server.token
        given = self.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        given = given or parse_qs(urlsplit(self.path).query).get("token", [""])[-1]
        if expected and not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
            raise Refused(HTTPStatus.UNAUTHORIZED, "wrong or no token: send `Authorization: Bearer TOKEN`")

        if not self.server.admit(self.connection):
            wait = f"too many connections: {MAX_CONNECTIONS} requests are being answered, wait for one of them"
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, wait)
        self._deadline.cancel()
        self._close_connection_after(_REQUEST_S)

    def _route(self, routes: dict[str, Callable[[], object]]) -> Callable[[], object]:
        path = urlsplit(self.path).path
        if path in routes:
            return routes[path]
        methods = {"/task": "GET", "/evaluate": "POST", "/finish": "POST", "/reset": "POST"}
        if path in methods:
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} is asked for with {methods[path]}")
        raise Refused(HTTPStatus.NOT_FOUND, f"there is no {path[:80]}, only {', '.join(methods)}")

    def _evaluate(self) -> object:
        request = self._body(EvaluateRequest, None)
        return self.server.episodes.evaluate(_encoded(request.kernel), request.profile)

    def _finish(self) -> object:
        request = self._body(FinishRequest, FinishRequest())
        return self.server.episodes.finish(None if request.kernel is None else _encoded(request.kernel))

    def _reset(self) -> object:
        return self.server.episodes.reset()

    def _body(self, kind: type[_Body], default: _Body | None) -> _Body:
        """The body as what it has to be; `default` where there is none."""
        length = self.headers.get("Content-Length", "0" if default is not None else "")
        if not (length.isascii() and length.isdigit()):
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "a body with its Content-Length is needed")
        if len(length) > 12 or int(length) > MAX_BODY_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body may have {MAX_BODY_BYTES} bytes")
        data = self.rfile.read(int(length))
        self._deadline.cancel()
        if len(data) < int(length):
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is shorter than its Content-Length, or came too slowly")
        if not data and default is not None:
            return default
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            raise Refused(HTTPStatus.BAD_REQUEST, f"not the JSON that is expected here: {problem}") from None

    def _reply(self, status: HTTPStatus, content: object) -> None:
        data = msgspec.json.encode(content)
        with suppress(OSError):  # a peer that has gone gets none
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is no HTTP, and methods that nobody knows: as JSON, too."""
        self.close_connection = True
        self._reply(HTTPStatus(code), {"error": message or HTTPStatus(code).phrase})

    def _close_connection_after(self, seconds: float) -> None:
        self._deadline = threading.Timer(seconds, self._close_connection)
        self._deadline.daemon = True
        self._deadline.start()

    def _close_connection(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RD)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


def _encoded(kernel: str) -> bytes:
    """The kernel's bytes, within what is taken."""
    try:
        data = kernel.encode()
    except UnicodeEncodeError:
        raise Refused(HTTPStatus.BAD_REQUEST, "`kernel` holds characters that are no text") from None
    if len(data) > KERNEL_LIMIT_BYTES:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the kernel may have {KERNEL_LIMIT_BYTES} bytes")
    return data

"""The socket behind `./evaluate`: kernels in, the judge's feedback out. The peer is untrusted.

One JSON line comes in on a connection, `{"kernel": str, "profile": bool}`, and one goes out,
`{"text": str, "result": object}`. Whatever is wrong with a request is answered with a text, and `result` is then
`{"status": null, "detail": text}`.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from arena.agents.base import Evaluates, Feedback
from arena.errors import InfrastructureError

MAX_REQUEST_BYTES = 4 << 20
MAX_CONNECTIONS = 32
_MAX_PATH_BYTES = 107
_ANSWER_S = 60.0
_GRACE_S = 0.5
_CHUNK = 1 << 16


class BadRequest(Exception):
    """What a peer sent is no request; the message tells it why."""


@dataclass(frozen=True)
class _Request:
    """A kernel that waits for its turn, and where the answer goes."""

    kernel: bytes
    profile: bool
    connection: socket.socket
    answer: Future[Feedback]


class WorkspaceServer:
    """Answers at a Unix socket as long as it is open; a context manager.

    Requests reach the service one at a time, in the order in which they arrived in full. A peer that closed its
    connection before its turn is passed over. Closing does not wait for a running evaluation, which ends unanswered.
    `request_s`: how long a request may take to arrive; long, since peers stand still while a judge measures.
    """

    def __init__(self, service: Evaluates, path: Path, *, request_s: float = 300.0) -> None:
        self._service, self._path, self._request_s = service, path, request_s
        self._queue: SimpleQueue[_Request | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._waiting: set[Future[Feedback]] = set()
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._failure: Exception | None = None

    @property
    def failure(self) -> Exception | None:
        """The last exception that the service raised, which is a fault of the harness; None as it should be."""
        return self._failure

    def __enter__(self) -> Self:
        """Listen; whoever can enter the socket's folder may connect. Raises `InfrastructureError` where it cannot."""
        if len(str(self._path).encode()) > _MAX_PATH_BYTES:
            raise InfrastructureError(f"{self._path}: too long for a Unix socket; set TMPDIR to a shorter path")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(str(self._path))
            self._path.chmod(0o666)
            self._listener.listen(MAX_CONNECTIONS)
        except OSError as problem:
            self._listener.close()
            raise InfrastructureError(f"cannot listen at {self._path}: {problem}") from None
        self._threads = [self._start(self._accept), self._start(self._serve)]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close every connection, and return at once."""
        with self._lock:
            self._closed = True
            connections, waiting = list(self._connections), list(self._waiting)
        _shut(self._listener)
        self._listener.close()
        for answer in waiting:
            answer.cancel()
        for connection in connections:
            _shut(connection)
        self._queue.put(None)
        deadline = time.monotonic() + _GRACE_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._path.unlink(missing_ok=True)

    def _start(self, target: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, name=f"workspace {target.__name__}", daemon=True)
        thread.start()
        return thread

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(0.05)  # out of descriptors, perhaps: others end
                continue
            with self._lock:
                full = len(self._connections) >= MAX_CONNECTIONS
                if not full:
                    self._connections.add(connection)
                closed = self._closed
            if full or closed:
                connection.setblocking(False)
                _send(connection, _problem(f"{MAX_CONNECTIONS} calls of ./evaluate are waiting already: try later"))
                connection.close()
            else:
                self._start(self._attend, connection)

    def _attend(self, connection: socket.socket) -> None:
        """One connection: read the request, wait for its turn, answer."""
        answer: Future[Feedback] = Future()
        try:
            kernel, profile = _parse(_read_line(connection, time.monotonic() + self._request_s))
            with self._lock:
                if self._closed:
                    return
                self._waiting.add(answer)
                self._queue.put(_Request(kernel, profile, connection, answer))
            reply = _reply(answer.result())
        except BadRequest as problem:
            reply = _problem(str(problem))
        except CancelledError:  # it closed the connection, or the service is closed
            reply = _problem("the judge is closed: the trial has ended")
        finally:
            with self._lock:
                self._waiting.discard(answer)
        connection.settimeout(_ANSWER_S)
        _send(connection, reply)
        with self._lock:
            self._connections.discard(connection)
        connection.close()

    def _serve(self) -> None:
        """Hand requests to the service in order, until the server is closed."""
        while (request := self._queue.get()) is not None:
            if self._closed or _disconnected(request.connection):
                request.answer.cancel()
            elif request.answer.set_running_or_notify_cancel():
                request.answer.set_result(self._evaluate(request))

    def _evaluate(self, request: _Request) -> Feedback:
        try:
            return self._service.evaluate(request.kernel, request.profile)
        except Exception as problem:  # a peer waits for an answer, whatever the fault is
            self._failure = problem
            text = "the judge failed, which says nothing about the kernel: try once more"
            return Feedback(text, _content(text), None)


def _read_line(connection: socket.socket, deadline: float) -> bytes:
    """The first line that a peer sends, at most `MAX_REQUEST_BYTES` long."""
    data = bytearray()
    while b"\n" not in data:
        left = deadline - time.monotonic()
        if left <= 0:
            raise BadRequest("the request did not arrive in time")
        connection.settimeout(left)
        try:
            chunk = connection.recv(_CHUNK)
        except TimeoutError:
            continue
        except OSError as problem:
            raise BadRequest(f"the connection broke: {problem}") from None
        if not chunk:
            raise BadRequest("the request has no end: one line of JSON is expected")
        data += chunk
        if len(data) > MAX_REQUEST_BYTES:
            raise BadRequest(f"the request is larger than {MAX_REQUEST_BYTES >> 20} MiB")
    return bytes(data.split(b"\n", 1)[0])


def _parse(line: bytes) -> tuple[bytes, bool]:
    """Kernel and whether to profile it."""
    try:
        request: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise BadRequest("the request is no JSON") from None
    if not isinstance(request, dict) or not {"kernel"} <= set(request) <= {"kernel", "profile"}:
        raise BadRequest('the request must be {"kernel": text, "profile": true or false}')
    kernel, profile = request["kernel"], request.get("profile", False)
    if not isinstance(kernel, str) or not isinstance(profile, bool):
        raise BadRequest("`kernel` must be a text, `profile` true or false")
    try:
        return kernel.encode(), profile
    except UnicodeEncodeError:
        raise BadRequest("`kernel` holds characters that are no text") from None


def _disconnected(connection: socket.socket) -> bool:
    """Return whether the peer has closed its end; one that only sends no more still waits."""
    poller = select.poll()
    try:
        poller.register(connection, 0)
        return any(state & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, state in poller.poll(0))
    except (OSError, ValueError):
        return True


def _send(connection: socket.socket, reply: bytes) -> None:
    """Send as far as the peer takes it."""
    try:
        connection.sendall(reply)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        return  # it is gone, or does not read: its loss


def _shut(connection: socket.socket) -> None:
    """Wake whoever waits on this socket."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # nobody was connected


def _reply(feedback: Feedback) -> bytes:
    return json.dumps({"text": feedback.text, "result": json.loads(feedback.content)}).encode() + b"\n"


def _content(text: str) -> bytes:
    return json.dumps({"status": None, "detail": text}).encode()


def _problem(text: str) -> bytes:
    return _reply(Feedback(text, _content(text), None))

"""The way out of a box: an HTTP proxy in the runner that lets exact `host:port` pairs pass, and nothing else.

The box has no network of its own; it reaches this proxy through a Unix socket. `CONNECT host:port` makes a tunnel,
`GET http://host:port/…` is carried as a plain request. Names are resolved here, never in the box. The peer is
untrusted.
"""

from __future__ import annotations

import re
import socket
import socketserver
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from arena.agents.inside.relay import exchange
from arena.errors import InfrastructureError, UsageError

HEAD_LIMIT_BYTES = 64 << 10
MAX_CONNECTIONS = 256
MAX_REFUSED_KINDS = 200
OTHERS = "(others)"
_HEAD_S = 30.0
_CONNECT_S = 30.0
_MAX_PATH_BYTES = 107
_MAX_HOST = 253
_HOST = re.compile(r"[a-z0-9_.:-]+")
_PORT = re.compile(r"[0-9]{1,5}")
_OF_THE_PROXY = (b"proxy-", b"connection:", b"keep-alive:")


@dataclass(frozen=True)
class Endpoint:
    """A host, in lower case and without a final dot, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class ProxyRequest:
    """What a client of the proxy wants: an endpoint, and what to send there first (nothing for a tunnel)."""

    endpoint: Endpoint
    tunnel: bool
    first: bytes


def parse_endpoint(text: str) -> Endpoint:
    """`host:port` or `[address]:port`; `localhost` is 127.0.0.1. Raises `UsageError`."""
    host, _, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    host = host.lower().removesuffix(".")
    host = "127.0.0.1" if host == "localhost" else host
    if (
        len(host) > _MAX_HOST
        or not _HOST.fullmatch(host)
        or not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16)
    ):
        raise UsageError(f"{text!r} is not an endpoint: write host:port")
    return Endpoint(host, int(port))


def parse_request(head: bytes) -> ProxyRequest:
    """What stands in the head of a request (up to and with the empty line). Raises `UsageError`."""
    line, _, rest = head.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise UsageError("not an HTTP/1 request")
    method, target, version = words
    if method == "CONNECT":
        return ProxyRequest(parse_endpoint(target), True, b"")
    try:
        parts = urlsplit(target)
        named = parts.port
    except ValueError:
        raise UsageError("not an absolute URL") from None
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError("not an absolute http URL")
    endpoint = parse_endpoint(f"{parts.hostname}:{80 if named is None else named}")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    kept = [header for header in rest.split(b"\r\n") if header and not header.lower().startswith(_OF_THE_PROXY)]
    lines = [f"{method} {path} {version}".encode("latin-1"), *kept, b"Connection: close"]
    return ProxyRequest(endpoint, False, b"\r\n".join(lines) + b"\r\n\r\n")


class AllowListProxy:
    """The proxy; a context manager that listens at `path` as long as it is open.

    `allowed`: `host:port`, compared letter by letter; raises `UsageError` where one is none.
    """

    def __init__(self, allowed: Iterable[str], path: Path) -> None:
        self.allowed = frozenset(parse_endpoint(entry) for entry in allowed)
        self._path = path
        self._lock = threading.Lock()
        self._refused: Counter[str] = Counter()
        self._open: set[socket.socket] = set()

    @property
    def refused(self) -> Mapping[str, int]:
        """How often what was refused, by `host:port`; beyond `MAX_REFUSED_KINDS` under `OTHERS`."""
        with self._lock:
            return dict(self._refused)

    def loopback_ports(self) -> list[int]:
        """The allowed ports of this machine's own loopback address, which the relay offers in the box."""
        return sorted({entry.port for entry in self.allowed if entry.host == "127.0.0.1"})

    def __enter__(self) -> Self:
        """Listen. Raises `InfrastructureError` where that is not possible."""
        if len(str(self._path).encode()) > _MAX_PATH_BYTES:
            raise InfrastructureError(f"{self._path}: too long for a Unix socket; set TMPDIR to a shorter path")
        self._server = _Server(str(self._path), self)
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="proxy", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop listening and close every connection."""
        self._server.shutdown()
        self._server.server_close()
        with self._lock:
            left = list(self._open)
        for connection in left:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def answer(self, client: socket.socket) -> None:
        """Serve one connection from its first byte to its last."""
        with self._lock:
            full = len(self._open) >= 2 * MAX_CONNECTIONS
            if not full:
                self._open.add(client)
        try:
            if full:
                _say(client, "503 Too Many Connections", "the proxy serves no more connections at a time")
            else:
                self._serve(client)
        except OSError:
            return
        finally:
            with self._lock:
                self._open.discard(client)

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(_HEAD_S)
        head, more = _read_head(client)
        try:
            request = parse_request(head)
        except UsageError as problem:
            _say(client, "400 Bad Request", str(problem))
            return
        if request.endpoint not in self.allowed:
            self._count(str(request.endpoint))
            _say(client, "403 Forbidden", f"{request.endpoint} is not among what this agent may reach")
            return
        try:
            server = socket.create_connection((request.endpoint.host, request.endpoint.port), _CONNECT_S)
        except (OSError, UnicodeError) as problem:
            _say(client, "502 Bad Gateway", f"{request.endpoint} cannot be reached: {problem}")
            return
        with self._lock:
            self._open.add(server)
        try:
            self._connect(client, server, request, more)
        finally:
            with self._lock:
                self._open.discard(server)

    def _connect(self, client: socket.socket, server: socket.socket, request: ProxyRequest, more: bytes) -> None:
        client.settimeout(None)
        server.settimeout(None)
        with server:
            if request.tunnel:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            server.sendall(request.first + more)
            exchange(client, server)

    def _count(self, name: str) -> None:
        with self._lock:
            known = name in self._refused or len(self._refused) < MAX_REFUSED_KINDS
            self._refused[name if known else OTHERS] += 1


def _read_head(client: socket.socket) -> tuple[bytes, bytes]:
    """The request's head, and what came with it already. Raises `OSError` where none comes."""
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = client.recv(4096)
        if not chunk or len(data) > HEAD_LIMIT_BYTES:
            raise OSError("no request")
        data += chunk
    head, _, more = data.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", more


def _say(client: socket.socket, status: str, text: str) -> None:
    body = f"{text}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    client.sendall(head.encode() + body)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, path: str, proxy: AllowListProxy) -> None:
        super().__init__(path, socketserver.BaseRequestHandler)
        self._proxy = proxy

    def finish_request(self, request: object, client_address: object) -> None:
        assert isinstance(request, socket.socket)
        self._proxy.answer(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A peer that misbehaves is no event of the harness; what it may not reach has been counted."""

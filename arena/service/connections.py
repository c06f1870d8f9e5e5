"""A server's connections, a thread each: who has not shown the token yet cannot keep out who has.

Used by `episode_server.py`. A connection begins as unknown. There is room for a few, for a short time, and the
oldest makes room for the next. Once its request is admitted it has a place among as many others, and more time.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from contextlib import suppress

MAX_CONNECTIONS = 32
"""requests that are being answered"""
MAX_STRANGERS = 32
_TURNED_AWAY = (
    b"HTTP/1.0 503 Service Unavailable\r\nContent-Type: application/json\r\n\r\n"
    b'{"error":"too many connections: send a request as soon as you are connected"}'
)
_Connection = socket.socket | tuple[bytes, socket.socket]


class Bounded(socketserver.ThreadingMixIn):
    """A thread for each connection, up to a number of unknown and of admitted ones."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._strangers: dict[socket.socket, None] = {}
        self._admitted: set[socket.socket] = set()

    def process_request(self, request: _Connection, client_address: object) -> None:
        """Take in an unknown connection; where there are too many, the one that has waited longest is turned away."""
        assert isinstance(request, socket.socket)
        with self._lock:
            self._strangers[request] = None
            surplus = list(self._strangers)[: len(self._strangers) - MAX_STRANGERS]
            for oldest in surplus:
                del self._strangers[oldest]
                _turn_away(oldest)
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread to be had
            self._forget(request)
            raise

    def process_request_thread(self, request: _Connection, client_address: object) -> None:
        """Answer, in a thread of its own."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def admit(self, connection: socket.socket) -> bool:
        """Return whether a connection that may ask finds a place; it is admitted then."""
        with self._lock:
            if len(self._admitted) >= MAX_CONNECTIONS:
                return False
            self._strangers.pop(connection, None)
            self._admitted.add(connection)
            return True

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that broke is its peer's business; what fails inside a request is answered there."""

    def _forget(self, connection: _Connection) -> None:
        assert isinstance(connection, socket.socket)
        with self._lock:
            self._strangers.pop(connection, None)
            self._admitted.discard(connection)


def _turn_away(connection: socket.socket) -> None:
    """Say so if that can be said at once, and have the thread that reads from it come to an end."""
    with suppress(OSError):
        connection.send(_TURNED_AWAY, socket.MSG_DONTWAIT)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)

"""Accept the connections of the HTTP server, and hand them to its protocol by token in turn.

Used by `http_server.py`. A flood of one client's requests waits here, unread, behind one request of every other client.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import deque
from collections.abc import Callable, Container
from contextlib import suppress

_ACCEPTED_AT_ONCE = 32
_HEAD_BYTES = 8192
_SWEPT_EVERY_S = 0.1
_SILENT_S = 0.2
_AGAIN_S = 0.05
MOST_WAITING = 256
"""connections of one token that wait for their turn"""
_TOKENS = (
    re.compile(rb"\r\nauthorization: *bearer +([^\r\n]+?) *\r\n", re.IGNORECASE),
    re.compile(rb"\A[A-Z]+ [^ \r\n]*[?&]token=([^& \r\n]+)"),
)
_BUSY_TEXT = b'{"error": "as many requests at once as may be: wait for answers"}'
_BUSY = (
    b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_BUSY_TEXT), _BUSY_TEXT)
)


class Admission:
    """Decides which connection is read next. All of it runs in the server's event loop.

    A token that the server does not know, or none, is one more client. A connection that is one too many is refused
    before its request is read, which costs a tenth of an answer.

    Args:
        listener: a listening socket.
        tokens: those that the server knows.
        is_busy: whether the holder of a token makes as many requests at once as it may.
        most_silent: connections from which nothing came in 0.2 s; the oldest is closed for the next.
        most_open: connections from which nothing came, of any age.
        silent_s: how long one may stay so.
    """

    def __init__(
        self,
        listener: socket.socket,
        tokens: Container[str],
        is_busy: Callable[[str], bool],
        *,
        most_silent: int,
        most_open: int,
        silent_s: float,
    ) -> None:
        self._listener, self._tokens, self._is_busy = listener, tokens, is_busy
        self._most_silent, self._most_open, self._silent_s = most_silent, most_open, silent_s
        self._silent: dict[socket.socket, float] = {}
        """since when, oldest first"""
        self._waiting: dict[str, deque[socket.socket]] = {}
        self._taken: set[asyncio.Task[object]] = set()

    def open(self, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Begin to accept; `protocol` makes one for each connection that is admitted."""
        self._loop, self._protocol = asyncio.get_running_loop(), protocol
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener, self._accept)
        self._sweep()

    def close(self) -> None:
        """Accept no more, and close every connection that was not admitted."""
        self._loop.remove_reader(self._listener)
        self._sweeping.cancel()
        for connection in list(self._silent):
            self._drop(connection)
        for waiting in self._waiting.values():
            for connection in waiting:
                connection.close()
        self._waiting.clear()

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no descriptor is left: those that wait in the kernel are accepted later
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_AGAIN_S, self._loop.add_reader, self._listener, self._accept)
                return
            connection.setblocking(False)
            self._silent[connection] = self._loop.time()
            self._heard(connection)
            if connection in self._silent:
                self._loop.add_reader(connection.fileno(), self._heard, connection)
            if len(self._silent) > self._most_open:
                self._drop(next(iter(self._silent)))

    def _sweep(self) -> None:
        """Close connections that are silent for too long, and the oldest of too many."""
        now = self._loop.time()
        quiet = [one for one, since in self._silent.items() if now - since > _SILENT_S]
        late = [one for one in quiet if now - self._silent[one] > self._silent_s]
        for connection in dict.fromkeys((*quiet[: -self._most_silent], *late)):
            self._heard(connection)  # what it sent may not have been noticed yet
            if connection in self._silent:
                self._drop(connection)
        self._sweeping = self._loop.call_later(_SWEPT_EVERY_S, self._sweep)

    def _drop(self, connection: socket.socket) -> None:
        self._loop.remove_reader(connection.fileno())
        self._silent.pop(connection, None)
        connection.close()

    def _heard(self, connection: socket.socket) -> None:
        """Put a connection that has sent something behind others of its token. It is not read yet."""
        try:
            head = connection.recv(_HEAD_BYTES, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            head = b""
        if not head:
            self._drop(connection)
            return
        self._loop.remove_reader(connection.fileno())
        del self._silent[connection]
        token = next((found[1].decode("latin-1") for one in _TOKENS if (found := one.search(head))), "")
        token = token if token in self._tokens else ""
        waiting = self._waiting.setdefault(token, deque())
        if len(waiting) >= MOST_WAITING or self._is_busy(token):
            self._refuse(connection)
            if not waiting:
                del self._waiting[token]
            return
        waiting.append(connection)
        if len(self._waiting) == len(waiting) == 1:
            self._loop.call_soon(self._turn)

    def _refuse(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.recv(_HEAD_BYTES)  # else closing would reset the connection, and its peer see no answer
            connection.send(_BUSY)
            connection.shutdown(socket.SHUT_WR)
        connection.close()

    def _turn(self) -> None:
        """Admit one connection of each token."""
        for token in list(self._waiting):
            waiting = self._waiting[token]
            connection = waiting.popleft()
            if not waiting:
                del self._waiting[token]
            if self._is_busy(token):
                self._refuse(connection)
                continue
            task = self._loop.create_task(self._admit(connection))
            self._taken.add(task)
            task.add_done_callback(self._taken.discard)
        if self._waiting:
            self._loop.call_soon(self._turn)

    async def _admit(self, connection: socket.socket) -> None:
        with suppress(OSError):
            await self._loop.connect_accepted_socket(self._protocol, connection)

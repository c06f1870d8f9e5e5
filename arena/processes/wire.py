"""Typed messages over a Unix socket, with file descriptors beside them. Never pickle: one end may be hostile."""

from __future__ import annotations

import array
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Generic, TypeVar, cast

import msgspec

MAX_FRAME_BYTES = 16 << 20
MAX_FILES = 4
_HEADER = struct.Struct("!I")

Out = TypeVar("Out")
In = TypeVar("In")


class ChannelClosed(Exception):
    """The other end is gone, or said something that is no message."""


class Malformed(ChannelClosed):
    """The other end sent what is no message: too long, not the JSON expected here, or not UTF-8."""


class ChannelTimeout(Exception):
    """Nothing came in time."""


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Deliver at the end the SIGINT or SIGTERM that comes meanwhile; in the main thread alone, which gets them all.

    A decoder that is made asks enumerations for attributes, and takes any exception for the lack of one, also that of
    a handler, which would be forgotten.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    if threading.current_thread() is not threading.main_thread():
        held = {}
    came: list[int] = []
    try:
        for number in held:
            signal.signal(number, lambda given, _: came.append(given))
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for given in dict.fromkeys(came):
            signal.raise_signal(given)


class Channel(Generic[Out, In]):
    """One end of a connection that sends `Out` and receives `In`; frames carry their length and are JSON inside.

    `encode`: what makes the inside of the frames that are sent, where the other end reads no JSON.
    `takes_files`: descriptors sent beside messages are accepted, else dropped by the kernel. `most_bytes`: of one
    incoming frame; what an untrusted peer may have us hold.
    """

    def __init__(
        self,
        connection: socket.socket,
        incoming: object,
        *,
        takes_files: bool = False,
        encode: Callable[[Out], bytes] = msgspec.json.encode,
        most_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        connection.setblocking(False)
        self._encode, self._most_bytes = encode, most_bytes
        self._socket = connection
        self._ancillary_bytes = socket.CMSG_SPACE(MAX_FILES * 4) if takes_files else 0
        with interrupts_held_back():
            self._decoder: msgspec.json.Decoder[In] = msgspec.json.Decoder(cast(type[In], incoming))
        self._spins = False
        self.arrived_s = 0.0
        """when the end of the last message came, by `time.perf_counter`"""
        self._buffer = bytearray()
        self._files: list[int] = []

    def fileno(self) -> int:
        """The socket's descriptor, for `select`."""
        return self._socket.fileno()

    @property
    def holds_more(self) -> bool:
        """Return whether part of another message came along with the last one."""
        return bool(self._buffer)

    def has_next(self) -> bool:
        """Return whether more has come than was received, or the other end has closed."""
        return self.holds_more or self._is_ready(select.POLLIN, 0.0)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()

    def send(self, message: Out, files: Sequence[int] = (), timeout_s: float = 30.0) -> None:
        """Send one message; raises `ChannelClosed` where nobody listens any more."""
        body = self._encode(message)
        data = memoryview(_HEADER.pack(len(body)) + body)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        deadline = time.monotonic() + timeout_s
        while data:
            try:
                sent = self._socket.sendmsg([data], ancillary)
            except BlockingIOError:
                self._wait(deadline, write=True)
                continue
            except OSError as problem:
                raise ChannelClosed(str(problem)) from None
            data, ancillary = data[sent:], []

    def receive(self, timeout_s: float | None, *, spins: bool = False) -> tuple[In, list[int]]:
        """The next message and the files sent with it. Raises `ChannelTimeout` or `ChannelClosed`.

        `spins`: poll instead of sleeping, which wakes up within a microsecond rather than tens of them.
        """
        self._spins = spins and timeout_s is not None
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        size = _HEADER.unpack(self._take(_HEADER.size, deadline))[0]
        if size > self._most_bytes:
            raise Malformed(f"a frame of {size} bytes, at most {self._most_bytes} are taken")
        body = self._take(size, deadline)
        files, self._files = self._files, []
        try:
            return self._decoder.decode(body), files
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            raise Malformed(f"not a message: {problem}") from None

    def _take(self, count: int, deadline: float | None) -> bytes:
        while len(self._buffer) < count:
            try:
                data, ancillary, _, _ = self._socket.recvmsg(65536, self._ancillary_bytes)
                self.arrived_s = time.perf_counter()
            except BlockingIOError:
                self._wait(deadline, write=False)
                continue
            except OSError as problem:
                raise ChannelClosed(str(problem)) from None
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    descriptors = array.array("i")
                    descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
                    self._files.extend(descriptors)
            if not data:
                raise ChannelClosed("end of file")
            self._buffer += data
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _wait(self, deadline: float | None, *, write: bool) -> None:
        """Sleep until the socket is ready; where the channel spins, return at once until the deadline."""
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise ChannelTimeout
        if self._spins and not write:
            return
        if not self._is_ready(select.POLLOUT if write else select.POLLIN, left):
            raise ChannelTimeout

    def _is_ready(self, event: int, within_s: float | None) -> bool:
        """Wait for an event of the socket, or its end; `poll` takes any descriptor, `select` those below 1024."""
        ends = select.poll()
        ends.register(self._socket, event)
        return bool(ends.poll(None if within_s is None else ceil(1000 * within_s)))

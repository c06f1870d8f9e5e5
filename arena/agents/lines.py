"""What a program prints on two pipes, line by line, as it comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from queue import Empty, Queue
from typing import IO, NamedTuple

LINE_LIMIT_BYTES = 8 << 20
_AHEAD = 64
_PIECE_BYTES = 1 << 16
_POLL_S = 0.05


class Line(NamedTuple):
    """One line, without its end, of `stdout` or `stderr`."""

    stream: str
    text: str


class Lines:
    """Reads both pipes in threads of its own, a few lines ahead: a program that prints faster than it is read waits.

    A line longer than `LINE_LIMIT_BYTES` is cut, and the rest of it dropped.
    """

    def __init__(self, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self._queue: Queue[Line] = Queue(_AHEAD)
        streams = {"stdout": stdout, "stderr": stderr}
        self._readers = [
            threading.Thread(target=self._read, args=(name, pipe), daemon=True) for name, pipe in streams.items()
        ]
        for reader in self._readers:
            reader.start()

    def take(self, timeout_s: float) -> Iterator[Line]:
        """Lines that are there, not more than are read ahead at most; waits so long for the first."""
        try:
            yield self._queue.get(timeout=timeout_s)
            for _ in range(_AHEAD):
                yield self._queue.get_nowait()
        except Empty:
            return

    def finish(self, timeout_s: float) -> Iterator[Line]:
        """The rest, once the program has ended: whoever still holds its pipes is not waited for longer than this."""
        deadline = time.monotonic() + timeout_s
        while any(reader.is_alive() for reader in self._readers) and time.monotonic() < deadline:
            yield from self.take(_POLL_S)
        while not self._queue.empty() and time.monotonic() < deadline:
            yield from self.take(_POLL_S)

    def _read(self, name: str, pipe: IO[bytes]) -> None:
        """Ends with the pipe, also where that is closed under it."""
        try:
            while line := pipe.readline(LINE_LIMIT_BYTES):
                if len(line) == LINE_LIMIT_BYTES and not line.endswith(b"\n"):
                    _skip_line(pipe)
                self._queue.put(Line(name, line.rstrip(b"\r\n").decode("utf-8", errors="replace")))
        except (OSError, ValueError):
            return


def _skip_line(pipe: IO[bytes]) -> None:
    """Read to the end of the line."""
    piece = pipe.readline(_PIECE_BYTES)
    while piece and not piece.endswith(b"\n"):
        piece = pipe.readline(_PIECE_BYTES)

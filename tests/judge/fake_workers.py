"""Workers that are the other end of a socket: the judge's own code reads them, and no process is started."""

from __future__ import annotations

import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from arena.judge.workers.worker import Worker
from arena.processes.protocol import ANSWER_BYTES, FromWorker, Ready
from arena.processes.wire import Channel


class NoTemplate:
    """The template of workers that are no processes: their end is never known."""

    def ended(self, pid: int) -> int | None:
        return None


class UnkillableWorker(Worker):
    """A worker without a process behind it: its number is that of no other's."""

    def kill(self) -> None:
        self._collected = True
        super().kill()

    def _signal(self, number: signal.Signals) -> None:
        """Nobody is there to hear it."""


def framed(body: bytes) -> bytes:
    """A body behind its length."""
    return len(body).to_bytes(4, "big") + body


@contextmanager
def connected_worker() -> Iterator[tuple[Worker, socket.socket]]:
    """A worker as the judge has it after its greeting, and the end that a candidate has its hands on."""
    ours, theirs = socket.socketpair()
    theirs.sendall(framed(msgspec.json.encode(Ready("session"))))
    with ours, theirs, tempfile.TemporaryFile() as log:
        channel: Channel[object, FromWorker] = Channel(ours, FromWorker, most_bytes=ANSWER_BYTES)
        yield UnkillableWorker(NoTemplate(), 0, channel, log), theirs  # type: ignore[arg-type]

"""Connections are admitted by token in turn, and refused unread where there are too many of one token."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from arena.processes import admission
from arena.processes.admission import Admission

TOKENS = {"hostile": "hostile", "honest": "honest"}


def head(token: str, number: int = 0) -> bytes:
    return f"POST /{number} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 9\r\n\r\n".encode()


class FirstLine(asyncio.Protocol):
    """Notes the first line and the token of what it is given."""

    def __init__(self, noted: list[str]) -> None:
        self._noted = noted

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.close()
        token = data.partition(b"Bearer ")[2] or data.partition(b"token=")[2]
        self._noted.append(token.split()[0].decode() if token else "none")


@contextmanager
def connected(heads: list[bytes]) -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    """Yield a listener at which these requests wait, and their peers."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        peers = []
        for one in heads:
            peers.append(socket.create_connection(listener.getsockname(), timeout=60))
            peers[-1].sendall(one)
        yield listener, peers
        for peer in peers:
            peer.close()


def admitted(listener: socket.socket, *, busy: str = "nobody", seconds: float = 0.5, most_silent: int = 8) -> list[str]:
    """Return the tokens of the requests that a protocol got, in order."""
    noted: list[str] = []

    async def serve() -> None:
        door = Admission(
            listener, TOKENS, lambda token: token == busy, most_silent=most_silent, most_open=512, silent_s=60.0
        )
        door.open(lambda: FirstLine(noted))
        await asyncio.sleep(seconds)
        door.close()

    asyncio.run(serve())
    return noted


def test_a_flood_stands_behind_one_request_of_every_other_client() -> None:
    flood = [head("hostile", number) for number in range(30)]
    with connected([*flood, head("honest")]) as (listener, _):
        found = admitted(listener)
    assert len(found) == 31 and found.index("honest") < 4, found


def test_tokens_that_are_unknown_are_one_client_together() -> None:
    strangers = [head(f"stranger-{number}") for number in range(20)]
    query = b"GET /tasks?token=honest HTTP/1.1\r\nHost: x\r\n\r\n"
    with connected([*strangers, b"GET / HTTP/1.1\r\n\r\n", query]) as (listener, _):
        found = admitted(listener)
    assert len(found) == 22 and found.index("honest") < 4, found


def test_more_than_may_wait_or_than_may_be_made_are_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MOST_WAITING", 2)
    with connected([head("hostile") for _ in range(6)]) as (listener, peers):
        found = admitted(listener)
        assert found == ["hostile"] * 2
        answers = [peer.recv(4096) for peer in peers]
        assert sum(answer.startswith(b"HTTP/1.1 429 ") for answer in answers) == 4
    with connected([head("hostile"), head("honest")]) as (listener, peers):
        assert admitted(listener, busy="hostile") == ["honest"]
        assert b"Retry-After: 1" in peers[0].recv(4096)


def test_the_oldest_of_too_many_silent_connections_are_closed() -> None:
    with connected([b""] * 12) as (listener, peers):
        assert admitted(listener, seconds=0.8) == []
        for peer in peers[:4]:
            assert peer.recv(1) == b""


def test_a_peer_that_is_gone_is_forgotten() -> None:
    with connected([b"", head("honest")]) as (listener, peers):
        peers[0].close()
        assert admitted(listener) == ["honest"]

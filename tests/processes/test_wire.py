"""Messages over a socket: whole or not at all, whatever the other end does."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from arena.processes.wire import MAX_FILES, MAX_FRAME_BYTES, Channel, ChannelClosed, ChannelTimeout


class Ping(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    number: int
    text: str = ""


class Pong(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    number: int


Either = Ping | Pong
Ends = tuple[Channel[Either, Either], socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A channel, and the bare socket at its other end."""
    ours, theirs = socket.socketpair()
    yield Channel(ours, Either), theirs
    ours.close()
    theirs.close()


@pytest.fixture
def pair() -> Iterator[tuple[Channel[Either, Either], Channel[Either, Either]]]:
    """Two channels; the second takes files."""
    one, two = socket.socketpair()
    yield Channel(one, Either), Channel(two, Either, takes_files=True)
    one.close()
    two.close()


def frame(body: bytes) -> bytes:
    return struct.pack("!I", len(body)) + body


def in_background(send: Callable[[Any], None], items: Iterable[object]) -> threading.Thread:
    def work() -> None:
        for item in items:
            send(item)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("spins", [False, True])
def test_messages_arrive_in_order(pair: tuple[Channel[Either, Either], Channel[Either, Either]], spins: bool) -> None:
    one, two = pair
    sent: list[Either] = [Ping(1), Pong(2), Ping(3, "ü" * 100_000)]
    sender = in_background(one.send, sent)
    assert [two.receive(5.0, spins=spins) for _ in sent] == [(message, []) for message in sent]
    sender.join()


@pytest.mark.parametrize("step", [1, 3, 7])
def test_pieces_are_put_together(ends: Ends, step: int) -> None:
    channel, theirs = ends
    data = frame(msgspec.json.encode(Ping(1, "piece by piece"))) + frame(msgspec.json.encode(Pong(2)))
    sender = in_background(theirs.sendall, [data[at : at + step] for at in range(0, len(data), step)])
    assert channel.receive(5.0)[0] == Ping(1, "piece by piece")
    assert channel.receive(5.0)[0] == Pong(2)
    sender.join()


def test_a_timeout_loses_nothing(ends: Ends) -> None:
    channel, theirs = ends
    theirs.sendall(frame(msgspec.json.encode(Pong(4)))[:3])
    with pytest.raises(ChannelTimeout):
        channel.receive(0.01)
    theirs.sendall(frame(msgspec.json.encode(Pong(4)))[3:])
    assert channel.receive(1.0)[0] == Pong(4)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (struct.pack("!I", MAX_FRAME_BYTES + 1), "a frame of"),
        (b"\xff\xff\xff\xff", "a frame of"),
        (frame(b"{not json"), "not a message"),
        (frame(b""), "not a message"),
        (frame(b"\xff\xfe"), "not a message"),
        (frame(b'{"type":"Bang","number":1}'), "not a message"),
        (frame(b'{"number":1}'), "not a message"),
        (frame(b'{"type":"Ping","number":"1"}'), "not a message"),
        (frame(b'{"type":"Ping","number":1,"more":2}'), "not a message"),
        (frame(b"[" * 100_000), "not a message"),
    ],
)
def test_what_is_no_message_closes_the_channel(ends: Ends, data: bytes, says: str) -> None:
    channel, theirs = ends
    sender = in_background(theirs.sendall, [data])
    with pytest.raises(ChannelClosed, match=says):
        channel.receive(5.0)
    sender.join()


@pytest.mark.parametrize("before", [b"", b"\0\0", frame(b'{"type":"Pong","number":1}')[:-1]])
def test_the_peer_is_gone(ends: Ends, before: bytes) -> None:
    channel, theirs = ends
    theirs.sendall(before)
    theirs.close()
    with pytest.raises(ChannelClosed, match="end of file"):
        channel.receive(5.0)
    with pytest.raises(ChannelClosed):
        channel.send(Pong(1))


@pytest.mark.parametrize("spins", [False, True])
def test_silence_times_out(ends: Ends, spins: bool) -> None:
    started = time.monotonic()
    with pytest.raises(ChannelTimeout):
        ends[0].receive(0.05, spins=spins)
    assert 0.04 < time.monotonic() - started < 60


def test_nobody_reads(ends: Ends) -> None:
    with pytest.raises(ChannelTimeout):
        ends[0].send(Ping(1, "x" * (4 << 20)), timeout_s=0.05)


def test_waiting_for_ever_ends_with_a_message(ends: Ends) -> None:
    channel, theirs = ends
    later = threading.Timer(0.05, theirs.sendall, (frame(msgspec.json.encode(Pong(5))),))
    later.start()
    assert channel.receive(None, spins=True)[0] == Pong(5)
    later.join()


def test_files_pass_with_their_message(pair: tuple[Channel[Either, Either], Channel[Either, Either]]) -> None:
    one, two = pair
    ends = [os.pipe() for _ in range(2)]
    one.send(Ping(1), files=[ends[0][1], ends[1][1]])
    message, files = two.receive(1.0)
    assert message == Ping(1) and len(files) == 2
    for number, file in enumerate(files):
        os.write(file, b"%d" % number)
        assert os.read(ends[number][0], 9) == b"%d" % number
    one.send(Pong(2))
    assert two.receive(1.0) == (Pong(2), [])
    for file in (*files, *ends[0], *ends[1]):
        os.close(file)


def test_as_many_files_as_agreed(pair: tuple[Channel[Either, Either], Channel[Either, Either]]) -> None:
    one, two = pair
    before = open_files()
    with Path("/dev/null").open("rb") as null:
        one.send(Ping(1), files=[null.fileno()] * (MAX_FILES + 3))
        _, files = two.receive(1.0)
    assert len(files) == MAX_FILES
    for file in files:
        os.close(file)
    assert open_files() == before


def test_files_are_dropped_where_they_are_not_accepted(
    pair: tuple[Channel[Either, Either], Channel[Either, Either]],
) -> None:
    one, two = pair
    before = open_files()
    with Path("/dev/null").open("rb") as null:
        two.send(Ping(1), files=[null.fileno()] * 2)
        assert one.receive(1.0) == (Ping(1), [])
    assert open_files() == before


def test_closing(ends: Ends) -> None:
    channel, theirs = ends
    assert channel.fileno() >= 0
    channel.close()
    assert theirs.recv(1) == b""

"""Ctrl-C is not lost in libraries."""

from __future__ import annotations

import signal
import socket
import threading
from enum import EnumMeta, StrEnum
from typing import Any

import msgspec
import pytest

from arena.processes.wire import Channel, interrupts_held_back


class Interrupting(EnumMeta):
    """Once `armed`, whoever asks an enumeration of this kind for an attribute that it lacks is interrupted."""

    armed = False

    def __getattr__(cls, name: str) -> Any:
        if Interrupting.armed:
            signal.raise_signal(signal.SIGINT)
        raise AttributeError(name)


class Kind(StrEnum, metaclass=Interrupting):
    RED = "red"


class Message(msgspec.Struct):
    kind: Kind


def test_a_channel_that_is_made_does_not_forget_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with theirs, ours:
        monkeypatch.setattr(Interrupting, "armed", True)
        with pytest.raises(KeyboardInterrupt):
            Channel(ours, Message)


def test_it_comes_at_the_end_and_once() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_are_left_alone() -> None:
    def work() -> None:
        with interrupts_held_back():
            seen.append(signal.getsignal(signal.SIGINT))

    seen: list[object] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_handler_of_sigterm_may_wait_too() -> None:
    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        done = []
        with pytest.raises(KeyboardInterrupt), interrupts_held_back():
            signal.raise_signal(signal.SIGTERM)
            done.append("all of it")
        assert done and signal.getsignal(signal.SIGTERM) is end
    finally:
        signal.signal(signal.SIGTERM, before)

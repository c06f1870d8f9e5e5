"""The loop of a model's requests: it stands still while it is paused, and ends when it is killed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from arena.agents.chat.pausable_loop import PausableLoop
from arena.results.record import Evaluation
from tests.agents.chat import trials
from tests.agents.chat.standin import PIECE, Connection, chunk, endpoint
from tests.fakes import Timing

SHORT_S = 0.1


class Ticking:
    """Work that shows that it goes on."""

    def __init__(self) -> None:
        self.ticks = 0

    async def tick(self) -> str:
        for _ in range(2000):
            self.ticks += 1
            await asyncio.sleep(0.005)
        return "to the end"


@contextmanager
def running(loop: PausableLoop, ticking: Ticking) -> Iterator[list[str | None]]:
    ended: list[str | None] = []
    thread = threading.Thread(target=lambda: ended.append(loop.run(ticking.tick())))
    thread.start()
    try:
        yield ended
    finally:
        loop.kill()
        thread.join(60)
        assert not thread.is_alive()


def wait_for_ticks(ticking: Ticking, more_than: int) -> None:
    deadline = time.monotonic() + 60
    while ticking.ticks <= more_than:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_nothing_happens_while_it_is_paused() -> None:
    loop, ticking = PausableLoop(), Ticking()
    with running(loop, ticking):
        wait_for_ticks(ticking, 3)
        for _ in range(3):
            loop.pause()
            at = ticking.ticks
            time.sleep(SHORT_S)
            assert ticking.ticks == at
            loop.resume()
            wait_for_ticks(ticking, at)


def test_a_pause_before_the_start_holds() -> None:
    loop, ticking = PausableLoop(), Ticking()
    loop.pause()
    with running(loop, ticking):
        time.sleep(SHORT_S)
        assert ticking.ticks <= 1
        loop.resume()
        wait_for_ticks(ticking, 3)


def test_killed_while_paused_it_ends() -> None:
    loop, ticking = PausableLoop(), Ticking()
    with running(loop, ticking) as ended:
        wait_for_ticks(ticking, 1)
        loop.pause()
        loop.kill()
    assert ended == [None]
    loop.pause()  # a judge may measure after the end
    loop.resume()


def test_killed_before_the_start_nothing_runs() -> None:
    loop, ticking = PausableLoop(), Ticking()
    loop.kill()
    assert loop.run(ticking.tick()) is None and ticking.ticks <= 1


class Slow(Timing):
    """Takes its time over an evaluation."""

    def finish(self, found: Evaluation, text: str) -> Evaluation:
        time.sleep(0.5)
        return super().finish(found, text)


def test_answers_are_not_read_while_a_judge_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sample is measured while another's answer comes; its time does not count."""
    monkeypatch.setattr(trials, "Timing", Slow)

    def slowly(connection: Connection) -> None:
        connection.begin()
        text = trials.coded("fast")
        for at in range(0, len(text), PIECE):
            connection.send(chunk({"content": text[at : at + PIECE]}))
            time.sleep(0.02)
        connection.send(chunk({}, "stop"))

    with endpoint(slowly) as server:
        began = time.monotonic()
        done = trials.tried(tmp_path, server, "turns: 2\n")
        took = time.monotonic() - began
    assert done.session.paused_s >= 1.0
    assert done.session.active_s <= took - done.session.paused_s

"""Exchanges of numbers between two workers by a counter, one after the other or both alive. Used by `counters.py`."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import statistics
import time
from collections import Counter as Count
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.processes.sandbox.channels import Place, _worker, _written
from tests.processes.sandbox.information import information

_LIMIT_S = 60


class Readable(Protocol):
    """A counter, as `counters.Counter` has it."""

    @property
    def leave(self) -> Callable[[Place, int], object]: ...
    @property
    def read(self) -> Callable[[Place], float]: ...
    @property
    def levels(self) -> int: ...
    @property
    def cyclic(self) -> bool: ...
    @property
    def before(self) -> bool: ...


class Answer(NamedTuple):
    """The answer of one worker: a value, or why there is none."""

    value: float = 0.0
    problem: str = ""


class Series(NamedTuple):
    """Many exchanges by one counter. `bits` and `control` are of one exchange, `seconds` is its median."""

    rounds: int
    bits: float
    control: float
    passes: bool
    seconds: float
    problem: str

    @property
    def rate(self) -> float:
        """Bits a second."""
        return self.bits / self.seconds if self.seconds else 0.0


class _Worker:
    """A forked process that does its steps when told to, and answers each."""

    def __init__(self, place: Place, which: int, confined: bool, steps: list[Callable[[], float | None]]) -> None:
        told, self._tell = os.pipe()
        self._answers, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._tell)
            try:
                signal.alarm(_LIMIT_S)
                _worker(place, which, confined, lambda: _obey(told, answers, steps))
            finally:
                os._exit(0)
        os.close(told)
        os.close(answers)
        self.answer()

    def answer(self) -> Answer:
        line = b""
        while not line.endswith(b"\n") and (more := os.read(self._answers, 4096)):
            line += more
        return Answer(*json.loads(line)) if line else Answer(problem="the worker ended")

    def ask(self) -> Answer:
        with suppress(BrokenPipeError):
            os.write(self._tell, b"x")
        return self.answer()

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._tell)
        os.close(self._answers)


def _obey(told: int, answers: int, steps: list[Callable[[], float | None]]) -> None:
    os.write(answers, b"[]\n")
    for step in steps:
        os.read(told, 1)
        answer = Answer()
        try:
            answer = Answer(float(step() or 0))
        except Exception as problem:
            answer = Answer(problem=type(problem).__name__)
        os.write(answers, json.dumps(answer).encode() + b"\n")
    os.read(told, 1)


def make_place(folder: Path) -> Place:
    """Return folders as `channels.py` has them, with two pages in each shown file."""
    place = Place(folder / "shown", (folder / "first", folder / "second"))
    for path in (place.shown, *(home / "triton" for home in place.homes)):
        path.mkdir(parents=True)
    for index in range(64):
        (place.shown / f"{index:02}").write_text("x" * 8192)
        _written(place.shown / f"{index:02}")
    return place


def _made_ready(place: Place) -> None:
    """Empty the homes, as the judge does after each worker, and drop the first four shown files from memory."""
    for home in place.homes:
        shutil.rmtree(home)
        (home / "triton").mkdir(parents=True)
    for index in range(4):
        with (place.shown / f"{index:02}").open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _one_after_the_other(counter: Readable, place: Place, number: int, confined: bool) -> tuple[Answer, Answer, float]:
    started = time.monotonic()
    first = _Worker(place, 0, confined, [lambda: (counter.leave(place, number), None)[1]])
    left = first.ask()
    first.end()
    shutil.rmtree(place.homes[0])
    (place.homes[0] / "triton").mkdir(parents=True)
    second = _Worker(place, 1, confined, [lambda: counter.read(place)])
    read = second.ask()
    took = time.monotonic() - started
    second.end()
    return left, read, took


def _both_alive(counter: Readable, place: Place, number: int, confined: bool) -> tuple[Answer, Answer, float]:
    first = _Worker(place, 0, confined, [lambda: (counter.leave(place, number), None)[1]])
    second = _Worker(place, 1, confined, [lambda: counter.read(place)] * 2)
    twice = counter.before and not counter.cyclic
    started = time.monotonic()
    before = second.ask() if twice else Answer()
    left = first.ask()
    read = second.ask()
    took = time.monotonic() - started
    for worker in (first, second):
        worker.end()
    return left, Answer(read.value - before.value, read.problem), took


def measure(
    counter: Readable, place: Place, rounds: int, *, alive: bool, confined: bool, limit_s: float = 1e9
) -> Series:
    """Exchange random numbers, and estimate how many bits pass in each exchange.

    It ends after `limit_s`, but not before a quarter of the rounds.
    """
    exchange = _both_alive if alive else _one_after_the_other
    numbers, values, seconds, problems = [], [], [], Count[str]()
    until = time.monotonic() + limit_s
    for index in range(rounds):
        if time.monotonic() > until and index >= rounds / 4:
            break
        number = random.SystemRandom().randrange(counter.levels)
        _made_ready(place)
        left, read, took = exchange(counter, place, number, confined)
        problem = left.problem or read.problem
        problems[problem] += 1
        if not read.problem:  # what could not be left may have left a trace all the same
            numbers.append(number)
            values.append(read.value)
            seconds.append(took)
    found = information(numbers, values, counter.levels, counter.cyclic)
    usual = problems.most_common(1)[0][0] if problems else ""
    took = statistics.median(seconds) if seconds else 0.0
    bits = found.bits if found.passes else 0.0
    return Series(len(numbers), bits, found.control, found.passes, took, usual)

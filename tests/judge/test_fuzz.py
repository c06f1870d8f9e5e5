"""Ten thousand hostile frames against the code that reads workers: each ends as an answer or as a failed candidate."""

from __future__ import annotations

import array
import os
import random
import resource
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from arena.judge.workers.answers import bounded
from arena.judge.workers.worker import CandidateFailed, Worker
from arena.processes.protocol import ANSWER_BYTES, Blame, Call, Done, Failed, FromWorker, Kernels, Profiled, Ready
from arena.results.portability import KernelUse
from arena.results.profile import KernelTime
from arena.results.verdict import Status
from tests.judge.fake_workers import connected_worker, framed

FRAMES = 10_000
WAIT_S = 0.01
GENEROUS_S = 5.0
ENDS = {Status.CRASH, Status.TIMEOUT, Status.LAUNCH_ERROR, Status.LOAD_ERROR}
Answer = FromWorker | tuple[KernelUse, ...] | tuple[KernelTime, ...]
ANSWERS: list[FromWorker] = [
    Done(0.5),
    Failed(Blame.LAUNCH_ERROR, "no"),
    Kernels((KernelUse("k", 1),)),
    Profiled((KernelTime("k", 1, 1.0, (1, 1, 1)),)),
    Ready("session"),
]
VALUES = (
    *("null", "true", "[]", "{}", '""', "-1", "1e308", "-0.0", "1e999", "9" * 400, "0.1", '"\\ud800"', '"\\u0000"'),
    *("NaN", "[[[[[]]]]]", '{"a":{"a":{}}}', '"' + "x" * 5000 + '"', "[" * 2000, '{"x":' * 2000),
)
FIELDS = ("type", "worker_s", "blame", "detail", "kernels", "isolation", "kernel", "registers", "grid", "zzz")


def valid(dice: random.Random) -> bytes:
    return msgspec.json.encode(dice.choice(ANSWERS))


def garbage(dice: random.Random) -> bytes:
    return dice.randbytes(dice.randrange(400))


def of_garbage(dice: random.Random) -> bytes:
    return framed(garbage(dice))


def truncated(dice: random.Random) -> bytes:
    whole = framed(valid(dice))
    return whole[: dice.randrange(len(whole))]


def oversized(dice: random.Random) -> bytes:
    return struct.pack("!I", dice.randrange(ANSWER_BYTES + 1, 1 << 32)) + valid(dice)


def wrong_length(dice: random.Random) -> bytes:
    body = valid(dice)
    return struct.pack("!I", max(0, len(body) + dice.randrange(-9, 10))) + body


def wrong_types(dice: random.Random) -> bytes:
    """Objects with any of the fields of any message, of any type."""
    kind = dice.choice(("Done", "Failed", "Kernels", "Profiled", "Ready", "Load", "Result"))
    fields = [f'"type":"{kind}"', *(f'"{dice.choice(FIELDS)}":{dice.choice(VALUES)}' for _ in range(3))]
    return framed(f"{{{','.join(fields)}}}".encode("utf-8", "surrogatepass"))


def in_a_kernel(dice: random.Random) -> bytes:
    """Wrong values, and fields that nobody knows, in the entries of a list."""
    kind, name = dice.choice((("Kernels", "registers"), ("Profiled", "calls")))
    entry = f'{{"kernel":"k","{name}":{dice.choice(VALUES)},"{dice.choice(FIELDS)}":{dice.choice(VALUES)}}}'
    return framed(f'{{"type":"{kind}","kernels":[{entry}]}}'.encode("utf-8", "surrogatepass"))


def nested(dice: random.Random) -> bytes:
    opening = dice.choice(('{"type":"Kernels","kernels":', '{"type":"Kernels","kernels":[{"x":', '{"x":', ""))
    return framed((opening + dice.choice(("[", '{"x":')) * dice.randrange(1, 25_000)).encode())


def no_utf8(dice: random.Random) -> bytes:
    broken = dice.choice((b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x28", b"\x80", b"\0"))
    return framed(b'{"type":"Failed","blame":"launch_error","detail":"' + broken + b'"}')


def too_much(dice: random.Random) -> bytes:
    """Well-formed, but larger than an honest worker would send."""
    size = dice.randrange(4_001, 60_000)
    answer = dice.choice((Failed(Blame.LOAD_ERROR, "é" * size), Kernels((KernelUse("k" * 301, 1),) * (size // 800))))
    return framed(msgspec.json.encode(answer))


def several(dice: random.Random) -> bytes:
    return b"".join(framed(valid(dice)) for _ in range(dice.randrange(2, 20)))


def mutated(dice: random.Random) -> bytes:
    data = bytearray(framed(valid(dice)))
    for _ in range(dice.randrange(1, 4)):
        data[dice.randrange(4 if dice.random() < 0.8 else 0, len(data))] = dice.randrange(256)
    return bytes(data)


KINDS: tuple[Callable[[random.Random], bytes], ...] = (
    *(garbage, of_garbage, truncated, oversized, wrong_length, wrong_types, in_a_kernel, nested, no_utf8, too_much),
    *(several, mutated, lambda dice: framed(valid(dice))),
)


def asked(worker: Worker, dice: random.Random, timeout_s: float) -> Answer:
    command = dice.randrange(3)
    if command == 0:
        return worker.ask(Call(0), timeout_s)
    return worker.kernels(timeout_s) if command == 1 else worker.profile(0, timeout_s)


def outcome(worker: Worker, dice: random.Random, timeout_s: float) -> str:
    """`answered`, or the status of the failed candidate; anything else that is raised fails the test."""
    try:
        answer = asked(worker, dice, timeout_s)
    except CandidateFailed as failure:
        assert failure.status in ENDS and len(failure.detail) <= 8000
        assert "\x1b" not in failure.detail and failure.detail.encode()
        return failure.status
    if isinstance(answer, Done):
        assert bounded(answer) == answer
    assert len(msgspec.json.encode(answer)) < ANSWER_BYTES
    return "answered"


def send_with_files(theirs: socket.socket, data: bytes) -> None:
    with Path("/dev/null").open("rb") as null:
        files = array.array("i", [null.fileno()] * 100)
        theirs.sendmsg([data[:60_000] or b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])


def held() -> tuple[int, int]:
    """The most memory that this process ever had, in MiB, and its open files."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.mark.slow
def test_ten_thousand_hostile_frames() -> None:
    """None ends the judge, whatever it is sent; time, memory and open files stay bounded."""
    dice, found = random.Random(18), Counter[str]()
    memory, files = held()
    started = time.process_time()
    for number in range(FRAMES):
        data, stays = KINDS[number % len(KINDS)](dice), number % 50 == 7
        with connected_worker() as (worker, theirs):
            theirs.settimeout(1.0)
            if number % 10 == 3:
                send_with_files(theirs, data)
            else:
                theirs.sendall(data)
            if not stays:
                theirs.shutdown(socket.SHUT_WR)
            found[outcome(worker, dice, WAIT_S if stays else GENEROUS_S)] += 1
    assert found.total() == FRAMES and found[Status.CRASH] > FRAMES / 2 and found["answered"] > FRAMES / 100
    assert held()[0] - memory < 64 and held()[1] == files
    assert time.process_time() - started < 60


def endlessly(theirs: socket.socket, data: bytes, pause_s: float) -> None:
    with suppress(OSError):
        while True:
            theirs.sendall(data)
            time.sleep(pause_s)


def test_floods_and_dribbles() -> None:
    """A worker that never stops sending, fast or a byte now and then, ends in time."""
    dice = random.Random(81)
    floods = (b"\0\0\0\2{}", framed(valid(dice)) * 1000, framed(b'{"type":"Done"}'), b"\xff" * 60_000)
    dribbles = (b"\0", b"\0\1", b"\0\0\1\0 ")
    memory = held()[0]
    for data, pause_s in [*((flood, 0.0) for flood in floods * 5), *((dribble, 0.005) for dribble in dribbles * 5)]:
        with connected_worker() as (worker, theirs):
            sender = threading.Thread(target=endlessly, args=(theirs, data, pause_s))
            sender.start()
            started = time.monotonic()
            outcome(worker, dice, 0.1)
            assert time.monotonic() - started < 60
            worker.kill()
            sender.join(60)
            assert not sender.is_alive()
    assert held()[0] - memory < 64


def test_a_large_frame_that_comes_slowly_to_its_end() -> None:
    with connected_worker() as (worker, theirs):
        data = framed(b" " * (ANSWER_BYTES - 15) + b'{"type":"Done"}')
        sender = threading.Thread(target=theirs.sendall, args=(data,))
        sender.start()
        assert worker.ask(Call(0), GENEROUS_S) == Done()
        sender.join(5)

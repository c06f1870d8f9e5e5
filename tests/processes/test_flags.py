"""Passes are timed by flags in shared memory: from `go` to `done`, whatever is sent beside them."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from arena.judge.correctness.buffers import Sets
from arena.judge.correctness.inputs import draw_secret
from arena.judge.workers.program import Program, WorkerProgram
from arena.judge.workers.worker import CandidateFailed, ForkServers
from arena.platforms.cpu.platform import CpuPlatform
from arena.processes.flags import Flags, new_flags
from arena.processes.protocol import ANSWER_BYTES, Arrange, Done, FromWorker, Language, Pass, Prepare, Ready, ToWorker
from arena.processes.wire import Channel, ChannelClosed
from arena.results.verdict import Status
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import arguments
from arena.task.numerics.reference import Reference
from arena.worker.command_loop import CommandLoop
from tests.judge.fake_workers import NoTemplate, UnkillableWorker, framed

PASS_S = 0.02
LONG_S = 1.5
"""much longer than two threads take to have each other run"""


def pair() -> tuple[Flags, Flags]:
    """Those of the judge and of its worker."""
    ours, file = new_flags()
    return ours, Flags(file)


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()


def test_a_pass_runs_between_go_and_done() -> None:
    ours, theirs = pair()
    ran: list[tuple[float, float]] = []

    def timed_pass() -> float:
        began = time.perf_counter()
        time.sleep(PASS_S)
        ran.append((began, time.perf_counter()))
        return 7.0

    for _ in range(3):
        with beside(lambda: theirs.run(timed_pass)):
            found = ours.time_pass(20.0, lambda: False)
        assert found is not None
        assert found[0] <= ran[-1][0] < ran[-1][1] <= found[1]
        assert ours.worker_s == 7.0


def test_a_pass_waits_for_the_judge() -> None:
    ours, theirs = pair()
    began: list[float] = []

    def timed_pass() -> float:
        began.append(time.perf_counter())
        return 0.0

    with beside(lambda: theirs.run(timed_pass)):
        time.sleep(PASS_S)
        assert not began
        found = ours.time_pass(20.0, lambda: False)
    assert found is not None
    assert began[0] >= found[0]


@pytest.mark.parametrize("gets_ready", [False, True])
def test_nothing_is_timed_where_the_worker_answers_or_is_silent(gets_ready: bool) -> None:
    ours, theirs = pair()
    if gets_ready:
        theirs._words[0] = 1
    assert ours.time_pass(0.05, lambda: False) is None
    assert ours.time_pass(20.0, lambda: True) is None, "at once"


def test_nobody_can_resize_the_memory() -> None:
    _, file = new_flags()
    with pytest.raises(PermissionError):
        os.ftruncate(file, 0)
    os.close(file)


class Talking(UnkillableWorker):
    """A worker in a thread, and the judge's end of it."""

    def __init__(self, serve: Callable[[Channel[FromWorker, ToWorker], Flags], object]) -> None:
        ours, theirs = socket.socketpair()
        theirs.sendall(framed(msgspec.json.encode(Ready("session"))))
        judge, file = new_flags()
        channel: Channel[Any, FromWorker] = Channel(ours, FromWorker, most_bytes=ANSWER_BYTES)
        log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the rest
        super().__init__(NoTemplate(), 0, channel, log, judge)  # type: ignore[arg-type]
        far: Channel[FromWorker, ToWorker] = Channel(theirs, ToWorker)

        def work() -> None:
            with closing(far), suppress(ChannelClosed):
                serve(far, Flags(file))

        self.thread = threading.Thread(target=work)
        self.thread.start()

    def __enter__(self) -> Talking:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self.thread.join()
        self._log.close()


def obeying(call: Callable[[int], None]) -> Callable[[Channel[FromWorker, ToWorker], Flags], object]:
    """The worker's own loop around an entry."""

    def serve(channel: Channel[FromWorker, ToWorker], flags: Flags) -> None:
        loop: Any = CommandLoop(channel, CpuPlatform(), flags)
        loop._entry = SimpleNamespace(call=call, bind=lambda _: None)
        loop.run()

    return serve


def test_a_worker_is_timed_by_its_flags() -> None:
    with Talking(obeying(lambda _: time.sleep(PASS_S))) as worker:
        worker.ask(Arrange("long", (0, 0), graph=False), 20.0)
        for _ in range(2):
            worker.timed(Prepare(), 20.0)
            seconds, done = worker.timed(Pass("long"), 20.0)
            assert seconds >= done.worker_s >= 2 * PASS_S
            assert worker.over_s <= time.perf_counter()
            assert worker.ready_s > 0


@pytest.mark.parametrize(("before_s", "after_s"), [(0.0, 0.0), (LONG_S, 0.0), (0.0, LONG_S)])
def test_what_comes_before_and_after_a_pass_is_kept_apart_from_it(before_s: float, after_s: float) -> None:
    """Who is ready late has that counted; nobody waits for what is said after a pass."""

    def serve(channel: Channel[FromWorker, ToWorker], flags: Flags) -> None:
        channel.receive(20.0)
        time.sleep(before_s)
        flags.run(lambda: 0.25)
        time.sleep(after_s)
        channel.receive(20.0)

    with Talking(serve) as worker:
        began = time.perf_counter()
        seconds, done = worker.timed(Pass("long"), 20.0)
        ended = time.perf_counter()
        assert seconds < LONG_S
        assert done == Done(0.25)
        assert before_s <= worker.ready_s < before_s + LONG_S
        assert began <= worker.over_s - seconds - worker.ready_s < began + LONG_S
        assert worker.over_s <= ended < worker.over_s + LONG_S


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, 1e300])
def test_what_a_worker_says_of_its_pass_has_bounds(number: float) -> None:
    def serve(channel: Channel[FromWorker, ToWorker], flags: Flags) -> None:
        channel.receive(20.0)
        flags.run(lambda: number)
        channel.receive(20.0)

    with Talking(serve) as worker, pytest.raises(CandidateFailed, match="worker_s"):
        worker.timed(Pass("long"), 20.0)


def test_the_number_of_another_pass_says_nothing() -> None:
    ours, theirs = pair()
    for number in (2, 99, -1):
        theirs._words[0] = theirs._words[16] = number
        assert ours.time_pass(0.05, lambda: False) is None
        ours._passes = 0


def test_a_pass_that_never_ends_times_out() -> None:
    def serve(channel: Channel[FromWorker, ToWorker], flags: Flags) -> None:
        channel.receive(20.0)
        flags._words[0] = 1
        channel.receive(200.0)

    with Talking(serve) as worker:
        began = time.monotonic()
        with pytest.raises(CandidateFailed) as failure:
            worker.timed(Pass("long"), 0.5)
        assert failure.value.status is Status.TIMEOUT
        assert time.monotonic() - began < 60


def test_a_pass_that_fails_is_the_candidates_failure() -> None:
    def call(_: int) -> None:
        raise RuntimeError("no such kernel")

    with Talking(obeying(call)) as worker:
        worker.ask(Arrange("long", (0,), graph=False), 20.0)
        for name in ("long", "one that nobody arranged"):
            with pytest.raises(CandidateFailed, match=r"no such kernel|nobody"):
                worker.timed(Pass(name), 20.0)


def test_an_answer_is_no_pass() -> None:
    """Who answers and has not run what was asked for has its hands on the channel."""

    def serve(channel: Channel[FromWorker, ToWorker], _: Flags) -> None:
        channel.receive(20.0)
        channel.send(Done(0.001))

    with Talking(serve) as worker, pytest.raises(CandidateFailed, match="not said that it is ready") as failure:
        worker.timed(Pass("long"), 20.0)
    assert failure.value.status is Status.CRASH


def test_an_answer_that_nobody_asked_for_is_none_to_the_next_command() -> None:
    """Sent after a pass, it would be there before the next `Prepare` is."""

    sent = threading.Event()

    def serve(channel: Channel[FromWorker, ToWorker], flags: Flags) -> None:
        channel.receive(20.0)
        flags.run(lambda: 0.001)
        channel.send(Done(0.0))
        sent.set()
        channel.receive(20.0)

    with Talking(serve) as worker:
        worker.timed(Pass("long"), 20.0)
        assert sent.wait(20.0)
        with pytest.raises(CandidateFailed, match="has none") as failure:
            worker.halt()
        assert failure.value.status is Status.CRASH


def test_a_worker_that_is_never_ready_times_out() -> None:
    with Talking(lambda channel, _: [channel.receive(200.0) for _ in range(2)]) as worker:
        began = time.monotonic()
        with pytest.raises(CandidateFailed) as failure:
            worker.timed(Pass("long"), 0.2)
        assert failure.value.status is Status.TIMEOUT
        assert time.monotonic() - began < 60


def test_a_worker_in_its_sandbox_says_that_it_is_done_and_nothing_else() -> None:
    """As a judge of GPUs has it, on the CPU: what the pass has written is there, and no answer is on its way."""
    task = load_task(TASKS / "triton2triton" / "normalization" / "rms_norm")
    case = min((arguments(task, each) for each in task.seen), key=lambda each: each.num_bytes)
    assert task.baseline_kernel is not None
    servers = ForkServers("cpu", spins=True, interprets=True)
    program = WorkerProgram(servers, None, (), 60.0).adopt(Program(task, Language.TRITON, {"": task.baseline_kernel}))
    sets = Sets(CpuPlatform(), case, 2)
    try:
        worker = program.ready(case.case)
        worker.ask(sets.bind_message(), 60.0, sets.files)
        worker.ask(Arrange("long", (0, 1), graph=False), 60.0)
        for _ in range(2):
            sets.write(draw_secret(case, Reference(task.reference_path), 2, "cpu"))
            sets.poison()
            worker.timed(Prepare(), 60.0)
            seconds, done = worker.timed(Pass("long"), 60.0)
            worker.halt()
            assert not sets.unwritten([0, 1])
            worker.stop()
            assert 0 < done.worker_s <= seconds
            assert not worker._channel.has_next()
    finally:
        program.discard()
        servers.close()
        sets.close()

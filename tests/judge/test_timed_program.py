"""What a side of a comparison does around a timed pass."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from arena.judge.performance.timed_program import TimedProgram
from arena.judge.performance.waits import LONG, SHORT, Waits
from arena.processes.protocol import Done, Pass, Prepare

_BUSY_S = 0.02
_TELLING_S = 0.005


class Answering:
    """A worker that does as it is told at once; what it was told, and when it was stopped."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.ready_s, self.over_s = 0.0, 0.0

    def timed(self, message: object, timeout_s: float) -> tuple[float, Done]:
        self.told.append(message)
        time.sleep(_TELLING_S)
        self.ready_s, self.over_s = 0.25, time.perf_counter()
        return 0.001, Done(0.0)

    def halt(self) -> None:
        self.told.append("halt")

    def stop(self) -> None:
        self.told.append("stop")

    def ask(self, message: object, timeout_s: float) -> Done:
        return self.timed(message, timeout_s)[1]

    def processor_s(self) -> float:
        """A message takes a quarter of a second of its processor time, whatever a clock says."""
        return 0.25 * sum(message != "stop" for message in self.told)


def side_on(*, graphs: bool) -> tuple[TimedProgram, Answering]:
    """A side whose device is busy for a while whenever it is asked to do something."""
    worker = Answering()

    def launch_tiny_kernel() -> None:
        worker.told.append("nudge")
        time.sleep(_BUSY_S)

    platform: Any = SimpleNamespace(graphs=graphs, launch_tiny_kernel=launch_tiny_kernel)
    worker_program: Any = SimpleNamespace(worker=worker)
    return TimedProgram(worker_program, platform, 1.0), worker


def test_how_long_the_device_is_busy_after_a_pass_is_noted() -> None:
    side, worker = side_on(graphs=True)
    seconds, _ = side.run(LONG)
    assert seconds == 0.001, "it is not part of the pass"
    # Halted by a signal first: freezing takes a while, in which a device that is still busy could finish.
    assert worker.told[-4:] == [Pass(LONG), "halt", "nudge", "stop"]
    side.run(SHORT)
    for name in (LONG, SHORT):
        (waited,) = side.waits.drain_s[name]
        assert _BUSY_S <= waited < 50 * _BUSY_S, "since the pass was over"


def test_getting_ready_is_gone_through_more_than_once_and_noted() -> None:
    side, worker = side_on(graphs=True)
    side.run(LONG)
    side.run(SHORT)
    times = worker.told.index(Pass(LONG))
    assert worker.told[:times] == [Prepare()] * times
    assert times > 1
    for name in (LONG, SHORT):
        (prepared,) = side.waits.prepare_s[name]
        assert times * _TELLING_S <= prepared < 50 * _BUSY_S, "all that passes meanwhile"
        assert side.waits.ready_s[name] == [0.25], "when the worker has heard of the pass"


def test_on_the_cpu_there_is_no_device_to_wait_for() -> None:
    side, _ = side_on(graphs=False)
    side.run(LONG)
    assert side.waits == Waits()


def test_on_the_cpu_processor_time_counts_from_before_the_data_came() -> None:
    """Whoever begins early, or leaves work to a thread, has it counted; a busy machine makes no difference."""
    side, worker = side_on(graphs=False)
    side._wakes_first = True
    side._sets = SimpleNamespace(write=lambda *_: None, poison=lambda *_: None)  # type: ignore[assignment]
    side.refresh({})
    worker.told.append("work begun early")
    assert side.run(LONG)[0] == 3 * 0.25, "being woken, the work, and the pass"

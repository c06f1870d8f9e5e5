"""A worker goes the way to the device once before a pass is timed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from arena.platforms.cpu.platform import CpuPlatform
from arena.processes.protocol import Arrange, Done, Pass, Prepare
from arena.worker.command_loop import CommandLoop


class Touched(CpuPlatform):
    """Counts what is issued beside the candidate's calls."""

    def __init__(self) -> None:
        super().__init__()
        self.touches = 0

    def touch(self) -> None:
        self.touches += 1


def test_a_rehearsal_precedes_a_pass_and_calls_nothing_of_the_candidates() -> None:
    platform, called = Touched(), []  # type: tuple[Touched, list[int]]
    worker: Any = CommandLoop(SimpleNamespace(), platform)  # type: ignore[arg-type]
    worker._entry = SimpleNamespace(call=called.append)

    def ask(message: Any) -> Any:
        answer = worker._answer(message, [])
        assert isinstance(answer, Done), answer
        return answer

    ask(Prepare())
    assert platform.touches == 0, "nothing is arranged yet"
    for name, sets in (("long", (0, 1, 2)), ("short", (3,))):
        ask(Arrange(name, sets, graph=False))
    ask(Prepare())
    assert (platform.touches, called) == (1, [])
    ask(Pass("long"))
    assert (platform.touches, called) == (1, [0, 1, 2])

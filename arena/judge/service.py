"""The judge as a process, `python -m arena.judge.service PLATFORM FD`: warm, one per device, one job at a time."""

from __future__ import annotations

import platform as host_platform
import socket
import sys
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msgspec import structs

import arena
from arena.errors import ArenaError
from arena.judge.baselines import Book
from arena.judge.device import Bench
from arena.judge.evaluate import Contest
from arena.judge.hosts import Template
from arena.judge.messages import CPU_MAX_WORK, Evaluate, FromJudge, HarnessFailed, Hello, Progress, Result, ToJudge
from arena.model.environment import Environment
from arena.model.record import Evaluation
from arena.model.verdict import Stage
from arena.platforms import detect, platform
from arena.platforms.base import Platform
from arena.taskfile.corpus import load_task
from arena.wire import Channel, ChannelClosed

_LIBRARIES = ("torch", "triton", "numpy")


class Judge:
    """One device, its template of hosts, and what is known of baselines."""

    def __init__(self, device: Platform) -> None:
        self._device = device
        self._template = Template(device.name, spins=device.spins)
        self._bench = Bench(device, device.facts())
        self._book: Book = {}

    def environment(self, isolation: str = "") -> Environment:
        """Device, versions and the walls that hosts are behind."""
        return Environment(self._bench.facts, isolation, _versions())

    def evaluate(self, request: Evaluate, channel: Channel[FromJudge, ToJudge]) -> Evaluation:
        """Evaluate one candidate."""
        options = request.options
        if options.max_work is None and self._bench.facts.emulated:
            options = structs.replace(options, max_work=CPU_MAX_WORK)

        def report(stage: Stage, done: int, total: int) -> None:
            channel.send(Progress(stage, done, total))

        task = load_task(Path(request.task))
        contest = Contest(task, Path(request.candidate), options, self._bench, self._template, self._book)
        return contest.run(self.environment, report)

    def close(self) -> None:
        """End the template and with it every host."""
        self._template.close()


def main(platform_name: str, descriptor: int) -> None:
    """Serve until the runner closes the channel."""
    channel: Channel[FromJudge, ToJudge] = Channel(socket.socket(fileno=descriptor), ToJudge)
    try:
        judge = Judge(platform(detect() if platform_name == "auto" else platform_name))
    except Exception:
        channel.send(HarnessFailed(traceback.format_exc()))
        return
    channel.send(Hello(judge.environment()))
    try:
        while True:
            request, _ = channel.receive(None)
            channel.send(_answer(judge, request, channel))
    except ChannelClosed:
        return
    finally:
        judge.close()


def _answer(judge: Judge, request: Evaluate, channel: Channel[FromJudge, ToJudge]) -> FromJudge:
    try:
        return Result(judge.evaluate(request, channel))
    except ArenaError as problem:
        return HarnessFailed(str(problem))
    except ChannelClosed:
        raise
    except Exception:
        return HarnessFailed(traceback.format_exc())


def _versions() -> dict[str, str]:
    found = {"arena": arena.__version__, "python": host_platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

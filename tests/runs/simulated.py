"""A run on pretended devices, whose judges and builder are one process: what it costs the runner.

`python -m tests.runs.simulated [--devices 64] [--evaluations 600] [--profile]` prints it, with the functions that
take most. Everything but judging and compiling is real: messages of a GPU's judge, records and progress on a terminal.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import math
import pstats
import random
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Self

from rich.console import Console

from arena.agents.base import AgentSpec
from arena.cli.progress import RunDisplay
from arena.judge.compile.builder_client import BuilderClient
from arena.judge.process.client import JudgeClient
from arena.judge.process.messages import (
    Compile,
    Compiled,
    Evaluate,
    EvaluationAnswer,
    Expect,
    FromBuilder,
    FromJudge,
    Hello,
    Progress,
    ToJudge,
)
from arena.processes.python_child import python_module
from arena.processes.wire import Channel, ChannelClosed
from arena.results.record import Evaluation, Split, Trial
from arena.results.verdict import Stage
from arena.runs import runner
from arena.runs.config import RunConfig
from arena.runs.service.judge_pool import JudgePool
from arena.task.corpus.task_folder import load_task
from tests.reports import builders

CASES = 24
TIMED = 12
"""of each evaluation: a record then has about 40 kB, the median of `full-h200`"""
ENVIRONMENT = builders.environment()


@dataclass(frozen=True)
class Cost:
    """What a run took of the runner's process and its threads, from the first trial to the last record."""

    evaluations: int
    processor_s: float
    wall_s: float
    start_s: float
    """processor time before the first trial began, and after the last record"""
    record_bytes: int

    @property
    def each_ms(self) -> float:
        """Processor time of an evaluation."""
        return 1e3 * self.processor_s / self.evaluations

    def __str__(self) -> str:
        rate = self.evaluations / self.wall_s
        return (
            f"{self.evaluations} evaluations, {rate:.1f} a second, records of {self.record_bytes / 1e3:.0f} kB: "
            f"{self.each_ms:.1f} ms of processor time each, {self.processor_s / self.wall_s:.2f} of a core; "
            f"{self.start_s:.1f} s before and after"
        )


class SimulatedJudge(JudgeClient):
    """The client of a judge that is a thread of another process."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._given = process, connection
        super().__init__("cuda")

    def _start(self) -> None:
        self._process, connection = self._given
        self._channel: Channel[ToJudge, FromJudge] = Channel(connection, FromJudge)
        self._greeted = self._broken = False


class SimulatedBuilder(BuilderClient):
    """The client of a builder that is a thread of another process."""

    def __init__(self, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
        self._given = process, connection
        super().__init__()

    def _start(self) -> None:
        self._process, connection = self._given
        self._channel: Channel[Compile, Compiled] = Channel(connection, Compiled)


@contextmanager
def simulated(devices: int, judged_s: float) -> Iterator[JudgePool]:
    """Start judges as a run on GPUs has them; an answer takes half to one and a half times `judged_s`."""
    pairs = [socket.socketpair() for _ in range(devices + 1)]
    numbers = [theirs.fileno() for _, theirs in pairs]
    command = python_module("tests.runs.simulated", "--judge", str(judged_s), *map(str, numbers))
    with subprocess.Popen(command, pass_fds=numbers, cwd=Path(__file__).parents[2]) as process:
        for _, theirs in pairs:
            theirs.close()
        (mine, _), *others = pairs
        judges = [SimulatedJudge(process, ours) for ours, _ in others]
        try:
            yield JudgePool(judges, SimulatedBuilder(process, mine))
        finally:
            process.kill()
            for ours, _ in pairs:
                ours.close()


class Stopwatch(RunDisplay):
    """Shows a run as a terminal would, and notes when it began and ended."""

    def __init__(self) -> None:
        super().__init__(Console(file=io.StringIO(), force_terminal=True, width=120))
        self.marks: list[tuple[float, float]] = []

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def planned(self, total: int, recorded: int) -> None:
        super().planned(total, recorded)
        self.marks.append((processor_s(), time.monotonic()))

    def finished(self, trial: Trial) -> None:
        super().finished(trial)
        self.marks[1:] = [(processor_s(), time.monotonic())]


def processor_s() -> float:
    """Processor time of this process and its threads so far, of user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextmanager
def profiled(lines: int = 40) -> Iterator[None]:
    """Print which functions of this process's threads took most of the processor's time."""
    profiles: list[cProfile.Profile] = []

    def begin(*_: object) -> None:
        profiles.append(cProfile.Profile(time.thread_time))
        profiles[-1].enable()

    threading.setprofile(begin)
    begin()
    try:
        yield
    finally:
        threading.setprofile(None)
        profiles[0].disable()
        stats = pstats.Stats(profiles[0])
        for one in profiles[1:]:
            one.create_stats()
            if one.stats:
                stats.add(one)
        stats.sort_stats("tottime").print_stats(lines)


def measured(folder: Path, devices: int, evaluations: int, rate: float) -> Cost:
    """Run the baselines of shipped tasks in turn on pretended GPUs, so many a second."""
    agents = (AgentSpec("noop", "noop"),)
    config = RunConfig(
        name="demo",
        tasks=("triton2triton/*", "hip2hip/*"),
        agents=agents,
        platform="cuda",
        path="demo.yaml",
        attempts=1,
    )
    plan = runner.plan_run(config)
    plan = replace(plan, config=replace(config, attempts=math.ceil(evaluations / len(plan.tasks))), limit=evaluations)
    with simulated(devices, devices / rate) as pool, Stopwatch() as watch:
        _ = pool.environments
        before = processor_s()
        run = runner.run(plan, folder / "demo", pool, watch)
        (first, began), (last, ended) = watch.marks
        edges_s = processor_s() - before - (last - first)
    sizes = [path.stat().st_size for path in (folder / "demo" / "trials").rglob("*.json")]
    assert len(run.trials) == evaluations and {trial.evaluation is not None for trial in run.trials} == {True}
    return Cost(evaluations, last - first, ended - began, edges_s, sum(sizes) // len(sizes))


# --- the process of the judges


def judge(connection: socket.socket, judged_s: float) -> None:
    """Answer as a judge does: a step for each case and stage, and at the end a record."""
    channel: Channel[FromJudge, ToJudge] = Channel(connection, ToJudge)
    channel.send(Hello(ENVIRONMENT))
    draw = random.Random(connection.fileno())
    while True:
        try:
            request, _ = channel.receive(None)
        except ChannelClosed:
            return
        if isinstance(request, Expect):
            continue
        assert isinstance(request, Evaluate)
        steps = [(stage, done) for stage in (Stage.CORRECTNESS, Stage.PERFORMANCE) for done in range(CASES)]
        takes_s = judged_s * draw.uniform(0.5, 1.5)
        for stage, done in steps:
            time.sleep(takes_s / len(steps))
            channel.send(Progress(stage, done, CASES))
        channel.send(EvaluationAnswer(evaluation(request.task)))


def builder(connection: socket.socket, took_s: float) -> None:
    """Find that everything compiles, in a thread for each request."""
    channel: Channel[object, Compile] = Channel(connection, Compile, takes_files=True)
    while True:
        try:
            _, [answers] = channel.receive(None)
        except ChannelClosed:
            return
        threading.Thread(target=_compiled, args=(socket.socket(fileno=answers), took_s), daemon=True).start()


def _compiled(connection: socket.socket, took_s: float) -> None:
    channel: Channel[FromBuilder, Compile] = Channel(connection, Compile)
    time.sleep(took_s)
    channel.send(Compiled(None))
    channel.close()


@cache
def evaluation(folder: str) -> Evaluation:
    """Return an evaluation of a task with as many cases and rounds as of one on a GPU."""
    task = load_task(Path(folder))
    cases = [
        builders.case(
            f"case-{number}", 1.0 if number < TIMED else None, split=Split.HELDOUT if number % 2 else Split.SEEN
        )
        for number in range(CASES)
    ]
    found = builders.trial(task.id, cases=cases).evaluation
    assert found is not None
    return replace(found, task_type=task.task_type, task_hash=task.content_hash, environment=ENVIRONMENT)


def main() -> None:
    """Print what a run costs its runner; or be the judges."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--devices", type=int, default=64)
    parser.add_argument("--evaluations", type=int, default=600)
    parser.add_argument("--rate", type=float, default=10.0, help="evaluations a second, of all devices")
    parser.add_argument("--profile", action="store_true", help="also print which functions of the runner take most")
    parser.add_argument("--judge", type=float, metavar="SECONDS", help="be the judges, on these descriptors")
    parser.add_argument("descriptors", nargs="*", type=int)
    given = parser.parse_args()
    if given.judge is not None:
        first, *others = (socket.socket(fileno=number) for number in given.descriptors)
        threads = [threading.Thread(target=judge, args=(one, given.judge), daemon=True) for one in others]
        for thread in threads:
            thread.start()
        builder(first, given.judge / 4)
        return
    with tempfile.TemporaryDirectory() as folder, profiled() if given.profile else nullcontext():
        cost = measured(Path(folder), given.devices, given.evaluations, given.rate)
        sys.stdout.write(f"{cost}\n")


if __name__ == "__main__":
    main()

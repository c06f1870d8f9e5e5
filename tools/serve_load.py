"""Concurrent episodes through one `arena serve` that is killed once and started again: throughput, and what is lost.

    python tools/serve_load.py --episodes 64 --tasks 20 --platform cpu --out runs/load

Each episode evaluates its task's baseline and finishes. Prints one JSON object: episodes, records, seconds, evaluations
an hour, median and 95th percentile of the seconds that an answer took, and how often the server was busy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

from arena import AsyncClient, list_tasks
from arena.errors import ArenaError, NotServed
from arena.processes.python_child import python_module
from arena.runs import records

POLL_S = 0.5


class Load:
    """One server after the other at one socket, and the clients that ask it."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.socket = given, Path(given.out) / "serve.sock"
        names = list_tasks("triton2triton/normalization/*", "triton2triton/fundamentals/*", "hip2hip/*")
        self.tasks = names[:: max(1, len(names) // given.tasks)][: given.tasks]
        self.seconds: list[float] = []
        self.busy = self.lost = self.finished = 0

    def start(self) -> subprocess.Popen[str]:
        """Start a server and wait until it says where it is."""
        given = self.given
        command = [
            *python_module("arena", "serve", *self.tasks, "--platform", given.platform),
            *("--socket", str(self.socket), "--runs-dir", given.out, "--name", "load", "--effort", given.effort),
            *(("--max-work", str(given.max_work)) if given.max_work else ()),
        ]
        self.socket.unlink(missing_ok=True)
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert server.stdout is not None and server.stdout.readline(), "the server did not start"
        return server

    async def ask(self, call: Any) -> Any:
        """Ask until there is an answer, also while the server is away."""
        while True:
            began = time.monotonic()
            try:
                async with AsyncClient(self.socket) as client:
                    answer = await call(client)
                self.seconds.append(time.monotonic() - began)
                return answer
            except NotServed as problem:
                if problem.status == 409:
                    return None  # it was finished, and the answer was lost
                if problem.status not in (429, 503):
                    raise
                self.busy += 1
                await asyncio.sleep(problem.retry_after_s or POLL_S)
            except ArenaError:
                self.lost += 1
                await asyncio.sleep(POLL_S)

    async def episode(self, number: int) -> None:
        """Begin, evaluate, finish."""
        task = self.tasks[number % len(self.tasks)]
        begun = await self.ask(lambda client: client.begin(task, seed=number))
        kernel = (await self.ask(lambda client: client.task(task))).kernel
        await self.ask(lambda client: client.evaluate(begun.episode, kernel))
        await self.ask(lambda client: client.finish(begun.episode))
        self.finished += 1

    async def run(self) -> dict[str, object]:
        """Run all episodes; kill the server when a third have finished."""
        server, began = self.start(), time.monotonic()
        waiting = [asyncio.create_task(self.episode(number)) for number in range(self.given.episodes)]
        while self.finished < self.given.episodes // 3:
            await asyncio.sleep(0.1)
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
        before = self.finished
        server = await asyncio.to_thread(self.start)
        await asyncio.gather(*waiting)
        seconds = time.monotonic() - began
        server.terminate()  # also where whoever started this ignores Ctrl-C, as shells do in the background
        code = server.wait(60)
        trials = records.read_run(Path(self.given.out) / "load").trials
        spent = sorted(self.seconds)
        return {
            "episodes": self.given.episodes,
            "tasks": len(self.tasks),
            "finished before the kill": before,
            "records": len(trials),
            "passed": sum(trial.status == "passed" for trial in trials),
            "seconds": round(seconds, 1),
            "evaluations an hour": round(2 * self.given.episodes / seconds * 3600),
            "answer, median s": round(statistics.median(spent), 2),
            "answer, 95th percentile s": round(spent[int(0.95 * len(spent))], 2),
            "busy": self.busy,
            "asked in vain": self.lost,
            "exit code": code,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--platform", default="auto")
    parser.add_argument("--effort", default="full")
    parser.add_argument("--max-work", type=float)
    parser.add_argument("--out", default="runs")
    given = parser.parse_args()
    if (Path(given.out) / "load").exists():
        parser.error(f"{given.out} holds an earlier load, whose episodes would count as answered: name another --out")
    Path(given.out).mkdir(parents=True, exist_ok=True)
    print(json.dumps(asyncio.run(Load(given).run()), indent=1))


if __name__ == "__main__":
    main()

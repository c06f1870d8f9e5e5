"""How many candidates an hour are judged, how long one takes, and for how much of that time kernels are timed.

    python tools/throughput.py --platform cuda                           sixty tasks on the first GPU
    python tools/throughput.py --platform cuda --devices all             and on all of them
    python tools/throughput.py --platform cuda --effort screen --in-flight 1       latency instead of throughput
    python tools/throughput.py --platform cpu --candidate expert 'hip2hip/*'       these tasks, their experts
    python tools/throughput.py --platform cuda --effort screen --hostile           beside programs that load all cores
    python tools/throughput.py --platform cuda --in-flight 1 --json alone.jsonl    does a full queue disturb latencies?
    python tools/throughput.py --platform cuda --beside alone.jsonl                this says by how much they differ
    python tools/throughput.py --compare one.jsonl two.jsonl                       compare two files of --json

Each chosen task's kernel is judged once a round. A comment makes its text unique, so that no cache has seen it.
`--in-flight` candidates wait or are judged at the same time, for each device. A candidate's latency therefore includes
its wait for a device. Before the clock starts, each judge evaluates the first task; nothing else is warm.
In the first round baselines are measured, too; in further ones (`--rounds 2`) one device knows them, as in training.
For how long a device runs any kernel is what its driver says, while the queue is full: NVIDIA's needs `nvidia-ml-py`.
A judged kernel is the task's own, unless experts are: how far its speedups are from 1 says what disturbs a measurement.
An interrupted round counts what was judged.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path

from figures.throughput import STAGES, Judged, Throughput, compared, compared_files, read, text
from msgspec import structs

from arena.cli.devices import chosen_devices
from arena.errors import InfrastructureError
from arena.results.effort import Effort
from arena.results.record import Evaluation
from arena.runs.service.judge_pool import JudgePool, started
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.selection import select
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.definition import Task
from arena.task.options import Options, options_of

MOST_TASKS = 60
SAMPLE_S = 0.2
"""between two questions for how long a device ran kernels"""
HOSTILE_TASK = "triton2triton/fundamentals/add"
HOSTILE_S = 20.0
"""until a builder gives up a hostile candidate, which never gets to a device"""
HOSTILE = """import hashlib, os, threading, time
for _ in range(4 * os.cpu_count()):
    threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"", b"", 2**31 - 1), daemon=True).start()
time.sleep(3600)
"""
_copies = count()


class HostileNeighbour:
    """While entered: a candidate that takes every core it can get, asked for again whenever it was refused."""

    def __init__(self, pool: JudgePool, task: Task, options: Options) -> None:
        self._pool, self._task = pool, task
        self._options = structs.replace(options, call_timeout_s=HOSTILE_S)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / self._task.task_type.kernel_file
            file.write_text(HOSTILE, encoding="utf-8")
            while not self._over.is_set():
                judged(self._pool, self._task, unseen_copy(file, Path(place)), self._options)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._pool.cancel()
        self._thread.join()


class BusyDevices:
    """While entered: asks each GPU's driver, five times a second, for how much of the last moments it ran kernels."""

    def __init__(self, shares: Sequence[Callable[[], float]]) -> None:
        self._shares = shares
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._began = time.monotonic()
        self.samples: list[tuple[float, float]] = []

    def _work(self) -> None:
        while not self._over.wait(SAMPLE_S):
            try:
                self.samples += [(time.monotonic() - self._began, share()) for share in self._shares]
            except RuntimeError as missing:
                print(f"not measured, how long a device runs kernels: {missing}", file=sys.stderr, flush=True)
                return

    def __enter__(self) -> BusyDevices:
        self._began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def busy_share(device: int) -> float:
    """Return the share of the last moments (1/6 s to 1 s) in which a GPU ran any kernel, as its driver says.

    Raises:
        RuntimeError: where there is none, or its driver cannot be asked.
    """
    import torch

    try:
        return torch.cuda.utilization(device) / 100
    except (AssertionError, ModuleNotFoundError) as missing:
        raise RuntimeError(str(missing)) from missing


def unseen_copy(candidate: Path, folder: Path) -> Path:
    """Write the candidate with a comment that nobody has compiled before."""
    mark = "#" if candidate.suffix == ".py" else "//"
    copy = folder / f"candidate-{next(_copies)}{candidate.suffix}"
    copy.write_text(f"{candidate.read_text(encoding='utf-8')}\n{mark} {time.time_ns()}\n", encoding="utf-8")
    return copy


def evenly(ids: Sequence[str], most: int) -> list[str]:
    """Return at most that many ids, at equal distances: the same ones each time."""
    return [ids[place * len(ids) // most] for place in range(most)] if len(ids) > most else list(ids)


def passes_s(evaluation: Evaluation) -> float:
    """Seconds of all timed passes whose rounds are kept."""
    rounds = [one for case in evaluation.cases if case.timing is not None for one in case.timing.rounds]
    baseline = sum(one.baseline_short_s + one.baseline_long_s + one.baseline_single_s for one in rounds)
    return baseline + sum(one.candidate_short_s + one.candidate_long_s + one.candidate_single_s for one in rounds)


def judged(pool: JudgePool, task: Task, candidate: Path, options: Options) -> Judged:
    """Have one candidate judged."""
    began = time.monotonic()
    try:
        evaluation = pool.evaluate(task, candidate, options)
    except InfrastructureError as problem:
        print(f"{task.id}: {problem}", file=sys.stderr, flush=True)
        return Judged(task.id, "no verdict", time.monotonic() - began, 0.0, dict.fromkeys(STAGES, 0.0))
    latency_s = time.monotonic() - began
    stages_s = {name: evaluation.seconds.get(name, 0.0) for name in STAGES}
    timings = {case.case: case.timing for case in evaluation.cases if case.timing is not None}
    speedups = tuple(one.speedup.value for one in timings.values())
    hold_one = sum(one.speedup.low <= 1 <= one.speedup.high for one in timings.values())
    detail = next((verdict.detail for verdict in evaluation.verdicts if verdict.detail), "")
    status, timed_s = evaluation.status.value, passes_s(evaluation)
    latencies_ms = {case: one.candidate_ms.value for case, one in timings.items()}
    return Judged(task.id, status, latency_s, timed_s, stages_s, speedups, hold_one, detail, latencies_ms=latencies_ms)


def measure(
    pool: JudgePool,
    candidates: Sequence[tuple[Task, Path]],
    options: Options,
    shares: Sequence[Callable[[], float]],
    in_flight: int,
    rounds: int = 1,
    seconds: float = math.inf,
) -> Iterator[Throughput]:
    """Judge all candidates in each round, `in_flight` at a time for each device; none is begun after some seconds.

    `shares`: for each device, how much of the last moments it ran kernels.
    """
    devices = len(shares)
    with tempfile.TemporaryDirectory() as place, ThreadPoolExecutor(devices * in_flight) as threads:
        folder = Path(place)
        warm_task, warm = candidates[0]
        for _ in threads.map(lambda _: judged(pool, warm_task, unseen_copy(warm, folder), options), range(devices)):
            pass
        for number in range(1, rounds + 1):
            copies = [(task, unseen_copy(kernel, folder)) for task, kernel in candidates]
            began = time.monotonic()

            def in_time(one: tuple[Task, Path], began: float = began) -> Judged | None:
                if time.monotonic() >= began + seconds:
                    return None
                found = judged(pool, *one, options)
                return replace(found, done_s=time.monotonic() - began)

            done: list[Judged] = []
            interrupted = False
            with BusyDevices(shares) as busy:
                try:
                    done.extend(shown(filter(None, threads.map(in_time, copies)), len(copies)))
                except KeyboardInterrupt:  # what was judged stays in the list, and counts
                    interrupted = True
                    threads.shutdown(wait=False, cancel_futures=True)
                    pool.cancel()
            if len(done) > 1:
                wall_s = max(one.done_s for one in done)
                samples = tuple(busy.samples)
                yield Throughput(number, devices, in_flight, options.effort.value, wall_s, tuple(done), samples)
            if interrupted:
                return


def shown(done: Iterator[Judged], of: int) -> Iterator[Judged]:
    """Print a line for each candidate."""
    for number, one in enumerate(done, 1):
        line = f"{one.status:<14} {one.task} {one.detail}".rstrip()
        print(f"{number:4} of {of} {one.latency_s:7.2f} s  {line}", file=sys.stderr, flush=True)
        yield one


def chosen_candidates(patterns: Sequence[str], which: str, most: int) -> list[tuple[Task, Path]]:
    """Return tasks and the kernel that is judged for each; tasks without one are left out."""
    tasks = [load_task(TASKS / name) for name in select(open_corpora().ids, patterns or ["*"])]
    kernels = {task.id: task.expert if which == "expert" else task.baseline_kernel for task in tasks}
    known = {task.id: (task, kernel) for task in tasks if (kernel := kernels[task.id]) is not None}
    return [known[name] for name in evenly(sorted(known), most)]


def main() -> None:
    """Print the figures, and write them where `--json` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help="names or patterns; default: all")
    parser.add_argument("--platform", default="auto", help="auto, cpu, cuda or rocm")
    parser.add_argument("--devices", default="", help="`all`, or numbers such as 0,1; default: the first")
    parser.add_argument("--effort", default="full", choices=[effort.value for effort in Effort])
    parser.add_argument("--candidate", default="kernel", choices=["kernel", "expert"], help="what is judged")
    parser.add_argument("--in-flight", type=int, default=3, help="candidates at the same time, for each device")
    parser.add_argument("--most", type=int, default=MOST_TASKS, help="so many tasks at most, spread evenly")
    parser.add_argument("--rounds", type=int, default=1, help="judge each task so many times, one after the other")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of a round, after which nothing is begun")
    parser.add_argument("--hostile", action="store_true", help="beside a candidate that loads all cores")
    parser.add_argument("--json", type=Path, help="also write every evaluation's figures to this file, a line a round")
    parser.add_argument("--beside", type=Path, help="compare latencies with the last round of this file, from --json")
    parser.add_argument("--compare", type=Path, nargs=2, metavar="FILE", help="compare two files of --json and stop")
    given = parser.parse_args()
    if given.compare:
        print(compared_files(*given.compare))
        return
    before = read(given.beside) if given.beside else []
    candidates = chosen_candidates(given.tasks, given.candidate, given.most)
    if len(candidates) < 2 or given.in_flight < 1:
        parser.error("expected at least two tasks with such a kernel, and one candidate in flight")
    devices = chosen_devices(given.devices)
    with started(given.platform, devices, builds=True) as pool:
        options = options_of({"effort": given.effort})
        neighbour = HostileNeighbour(pool, load_task(TASKS / HOSTILE_TASK), options) if given.hostile else nullcontext()
        with neighbour:
            shares = [partial(busy_share, number or 0) for number in devices]
            measured = measure(pool, candidates, options, shares, given.in_flight, given.rounds, given.seconds)
            for found in measured:
                print(text(found), flush=True)
                if before:
                    print(compared(found, before[-1]), flush=True)
                if given.json:
                    with given.json.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(found)) + "\n")


if __name__ == "__main__":
    main()

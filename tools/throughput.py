"""How many candidates an hour are judged, how long one takes, and for how much of that time kernels are timed.

    python tools/throughput.py --platform cuda                           sixty tasks on the first GPU
    python tools/throughput.py --platform cuda --devices all             and on all of them
    python tools/throughput.py --platform cuda --effort screen --in-flight 1       latency instead of throughput
    python tools/throughput.py --platform cpu --candidate expert 'hip2hip/*'       these tasks, their experts
    python tools/throughput.py --platform cuda --effort screen --hostile           beside programs that load all cores
    python tools/throughput.py --platform cuda --in-flight 1 --json alone.jsonl    does a full queue disturb latencies?
    python tools/throughput.py --platform cuda --beside alone.jsonl                this says by how much they differ

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
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path

from msgspec import structs

from arena.cli.devices import chosen_devices
from arena.corpus.corpora import open_corpora
from arena.corpus.selection import select
from arena.corpus.task_folder import TASKS, load_task
from arena.errors import InfrastructureError
from arena.judge.messages import Options, options_of
from arena.model.effort import Effort
from arena.model.record import Evaluation
from arena.model.task import Task
from arena.service.judge_pool import JudgePool, started

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
STAGES = ("compile", "correctness", "performance", "heldout")
_copies = count()


@dataclass(frozen=True)
class Judged:
    """One candidate: its latency, and the parts of it that the judge recorded, in seconds."""

    task: str
    status: str
    latency_s: float
    passes_s: float
    stages_s: dict[str, float]
    speedups: tuple[float, ...] = ()
    hold_one: int = 0
    """of how many of these the interval holds 1"""
    detail: str = ""
    """what was wrong with it"""
    done_s: float = 0.0
    """when it was judged, since the round began"""
    latencies_ms: dict[str, float] = field(default_factory=dict)
    """of the candidate, by timed case"""


@dataclass(frozen=True)
class Throughput:
    """What was measured on some devices."""

    round: int
    devices: int
    in_flight: int
    effort: str
    wall_s: float
    judged: tuple[Judged, ...]
    busy: tuple[tuple[float, float], ...] = ()
    """seconds since the round began, and the share of the last moments in which a device ran any kernel"""

    @property
    def an_hour(self) -> float:
        """Evaluations an hour."""
        return 3600 * len(self.judged) / self.wall_s

    @property
    def begun_s(self) -> float:
        """When the last candidate was begun: until then the queue was full."""
        return max(one.done_s - one.latency_s for one in self.judged)

    @property
    def steady_an_hour(self) -> float:
        """Evaluations an hour between the first that was judged and the last that was begun; nan for few."""
        first = min(one.done_s for one in self.judged)
        within = sum(first < one.done_s <= self.begun_s for one in self.judged)
        return 3600 * within / (self.begun_s - first) if within else math.nan

    @property
    def judging(self) -> float:
        """Share of the devices' time in which a judge evaluates."""
        return sum(sum(one.stages_s.values()) for one in self.judged) / (self.wall_s * self.devices)

    @property
    def timed(self) -> float:
        """Share of the devices' time that is timed passes, of baselines or of candidates."""
        return sum(one.passes_s for one in self.judged) / (self.wall_s * self.devices)

    @property
    def running(self) -> float:
        """Share of the devices' time in which they ran kernels while the queue was full; nan where nothing says so."""
        first = min(one.done_s for one in self.judged)
        within = [share for at, share in self.busy if first < at <= self.begun_s]
        return statistics.fmean(within) if within else math.nan

    @property
    def speedups(self) -> tuple[float, ...]:
        """Of all timed cases, ascending."""
        return tuple(sorted(speedup for one in self.judged for speedup in one.speedups))

    @property
    def latencies_ms(self) -> dict[tuple[str, str], float]:
        """Of each task's candidate, by timed case."""
        return {(one.task, case): ms for one in self.judged for case, ms in one.latencies_ms.items()}


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
        said = f"{one.status:<14} {one.task} {one.detail}".rstrip()
        print(f"{number:4} of {of} {one.latency_s:7.2f} s  {said}", file=sys.stderr, flush=True)
        yield one


def text(found: Throughput) -> str:
    """Return the summary as lines."""
    cuts = statistics.quantiles([one.latency_s for one in found.judged], n=20, method="inclusive")
    passed = sum(one.status == "passed" for one in found.judged)
    lines = [
        f"round {found.round}: {len(found.judged)} evaluations ({passed} passed), effort {found.effort}, "
        f"on {found.devices} device(s), "
        f"{found.in_flight} in flight for each: {found.wall_s:.1f} s",
        f"{found.an_hour:.0f} evaluations an hour, {found.an_hour / found.devices:.0f} for each device",
        f"{found.steady_an_hour:.0f} an hour from the first that was judged to the last that was begun, at "
        f"{found.begun_s:.0f} s: while the queue was full",
        f"latency: median {cuts[9]:.2f} s, 90 % within {cuts[17]:.2f} s, 95 % within {cuts[18]:.2f} s",
        f"judging {found.judging:.0%} of the devices' time, timed passes {found.timed:.0%}",
    ]
    if not math.isnan(found.running):
        lines.append(f"kernels run for {found.running:.0%} of the devices' time while the queue is full")
    for name in STAGES:
        seconds = [one.stages_s[name] for one in found.judged]
        lines.append(f"    {name:<12} median {statistics.median(seconds):6.2f} s, most {max(seconds):6.2f} s")
    if found.speedups:
        worst = max(found.speedups, key=lambda speedup: abs(math.log(speedup)))
        middle = statistics.median(found.speedups)
        held = sum(one.hold_one for one in found.judged)
        lines.append(f"speedups: median {middle:.4f}, furthest from 1 is {worst:.4f}, of {len(found.speedups)} cases")
        lines.append(f"{held} of their intervals hold 1")
    return "\n".join(lines)


def compared(found: Throughput, earlier: Path) -> str:
    """Say how far latencies are from those in the last line of a file that `--json` wrote."""
    before = json.loads(earlier.read_text(encoding="utf-8").splitlines()[-1])["judged"]
    known = {(one["task"], case): ms for one in before for case, ms in one.get("latencies_ms", {}).items()}
    ratios = {name: ms / known[name] for name, ms in found.latencies_ms.items() if known.get(name, 0) > 0 and ms > 0}
    if not ratios:
        return f"no latency of a case that {earlier} has"
    name = max(ratios, key=lambda name: abs(math.log(ratios[name])))
    middle, worst = statistics.median(ratios.values()), f"{ratios[name]:.4f} ({' '.join(name)})"
    return f"latencies over those of {earlier}: median {middle:.4f}, furthest from 1 is {worst}, of {len(ratios)} cases"


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
    given = parser.parse_args()
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
                if given.beside:
                    print(compared(found, given.beside), flush=True)
                if given.json:
                    with given.json.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(found)) + "\n")


if __name__ == "__main__":
    main()

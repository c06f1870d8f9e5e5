"""Where does the time of a judge go, call by call?

    python tools/profile_calls.py --platform cuda 'triton2triton/normalization/*' --most 6

Evaluates each task's own kernel with a warm judge in this process, which knows the baseline and has compiled the kernel
in an evaluation before. Of each function in `WATCHED` it prints the share of the time, how many calls there were, and
milliseconds a call; a function's time includes that of those it calls. Before and after each, the device is waited
for, so that its time is theirs; the whole takes longer by it. Then one line for each placement of a timed comparison:
the task, the case, the sets and gigabytes of a round, the rounds, and milliseconds a round in its parts.
`--kernels` evaluates all a third time, with PyTorch's profiler: the judge's own kernels by the device's time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from split_cost import Silent  # noqa: E402
from throughput import evenly, unseen_copy  # noqa: E402
from wrapping import Function, wrap  # noqa: E402

from arena.judge.correctness import verify  # noqa: E402
from arena.judge.correctness.buffers import Sets, lay_out  # noqa: E402
from arena.judge.correctness.stage import CorrectnessCheck  # noqa: E402
from arena.judge.evaluate import CandidateEvaluation  # noqa: E402
from arena.judge.performance import stage as performance  # noqa: E402
from arena.judge.performance import timed_program  # noqa: E402
from arena.judge.performance.baselines import Baselines  # noqa: E402
from arena.judge.performance.planning import Planner  # noqa: E402
from arena.judge.performance.stage import PerformanceCheck  # noqa: E402
from arena.judge.performance.timed_program import PassPlan, TimedProgram  # noqa: E402
from arena.judge.performance.timer import Timer  # noqa: E402
from arena.judge.process.messages import HELDOUT, SEEN, Evaluate  # noqa: E402
from arena.judge.process.service import JudgeService  # noqa: E402
from arena.judge.workers.watchdog import WatchedWorker  # noqa: E402
from arena.judge.workers.worker import ForkServer, Worker  # noqa: E402
from arena.platforms import here  # noqa: E402
from arena.processes.protocol import ToWorker  # noqa: E402
from arena.results.effort import Effort  # noqa: E402
from arena.task.corpus.corpora import open_corpora  # noqa: E402
from arena.task.corpus.selection import select  # noqa: E402
from arena.task.corpus.task_folder import TASKS, load_task  # noqa: E402
from arena.task.definition import Arguments, Task  # noqa: E402
from arena.task.numerics.reference import Reference  # noqa: E402
from arena.task.options import Options  # noqa: E402

WATCHED: tuple[tuple[Any, str], ...] = (
    *((CandidateEvaluation, name) for name in ("run", "_compile", "_check", "_time", "_generalization", "close")),
    *((PerformanceCheck, name) for name in ("isolated", "_compared", "_round", "_draw", "_check_outputs")),
    *((Planner, name) for name in ("plan", "_rough_call_s")),
    (Timer, "run"),
    *((TimedProgram, name) for name in ("bind", "refresh", "run", "collect", "unbind")),
    *(
        (Sets, name)
        for name in ("write", "poison", "wipe", "unwritten", "outside", "scatter_canaries", "renew_canaries")
    ),
    *((CorrectnessCheck, name) for name in ("run", "first_call")),
    (Reference, "__call__"),
    (Reference, "make_inputs"),
    (Baselines, "known"),
    (WatchedWorker, "kill_worker"),
    (ForkServer, "spawn"),
    (performance, "check_outputs"),
    (performance, "check_inputs"),
    (performance, "check_outside"),
    (timed_program, "draw_secret"),
    (verify, "error_ratio"),
)
PARTS = (
    *("PerformanceCheck._draw", "Timer.run", "PerformanceCheck._check_outputs"),
    *("TimedProgram.refresh", "TimedProgram.collect", "Sets.wipe", "performance.check_outputs"),
)
"""those in which a round is split"""
MOST_KERNELS = 40


class Watch:
    """Seconds and calls of functions by name, and of each timed comparison."""

    def __init__(self, synchronize: Callable[[], None]) -> None:
        self._synchronize = synchronize
        self.spent: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        self.cases: list[str] = []

    def install(self) -> None:
        """Have every function in `WATCHED`, and every message to a worker, add its seconds."""
        for owner, name, label in labelled():
            self._wrap(owner, name, label)
        self._per_case()

    def _wrap(self, owner: Any, name: str, label: Callable[..., str]) -> None:
        def around(original: Function) -> Function:
            def outer(*given: Any, **named: Any) -> Any:
                self._synchronize()
                started = time.perf_counter()
                try:
                    return original(*given, **named)
                finally:
                    self._synchronize()
                    entry = self.spent[label(*given, **named)]
                    entry[0] += 1
                    entry[1] += time.perf_counter() - started

            return outer

        wrap(owner, name, around)

    def _per_case(self) -> None:
        rounds, watch = PerformanceCheck._rounds, self

        def outer(check: PerformanceCheck, worked_out: Arguments, plan: PassPlan, found: Any, *more: Any) -> Any:
            before, so_far = {part: watch.spent[part][1] for part in PARTS}, len(found)
            started = time.perf_counter()
            try:
                return rounds(check, worked_out, plan, found, *more)
            finally:
                done, seconds = max(len(found) - so_far, 1), time.perf_counter() - started
                parts = " ".join(f"{1e3 * (watch.spent[p][1] - before[p]) / done:.1f}" for p in PARTS)
                gigabytes = lay_out(worked_out, plan.sets)[1] / 1e9
                case = f"{worked_out.task.id} {worked_out.case.id} {plan.sets} {gigabytes:.2f}"
                watch.cases.append(f"{case} {done} {1e3 * seconds / done:.1f} {parts}")

        PerformanceCheck._rounds = outer  # type: ignore[method-assign, assignment]

    def report(self, evaluations: int) -> None:
        """Print all of it, the greatest share first."""
        total = self.spent["CandidateEvaluation.run"][1] + self.spent["CandidateEvaluation.close"][1]
        print(f"{evaluations} evaluations, {total:.1f} s; share, calls, milliseconds a call")
        for name, (calls, seconds) in sorted(self.spent.items(), key=lambda entry: -entry[1][1]):
            print(f"{100 * seconds / total:6.1f}% {calls:6.0f} {1e3 * seconds / max(calls, 1):9.2f}  {name}")
        print("task case sets GB rounds ms-a-round " + " ".join(PARTS))
        print("\n".join(self.cases))


def labelled() -> Iterator[tuple[Any, str, Callable[..., str]]]:
    """All of `WATCHED`, and every message to a worker, each with what names a call of it."""
    for owner, name in WATCHED:
        yield owner, name, partial(_named, f"{owner.__name__.rpartition('.')[2]}.{name}")
    for name in ("ask", "timed"):
        yield Worker, name, partial(_message, name)


def _named(name: str, *_: Any, **__: Any) -> str:
    return name


def _message(how: str, _: Worker, message: ToWorker, *__: Any, **___: Any) -> str:
    return f"Worker.{how} {type(message).__name__}"


def _print_kernels(judge: JudgeService, requests: Sequence[Evaluate]) -> None:
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiled:
        started = time.perf_counter()
        for request in requests:
            judge.evaluate(request, Silent())  # type: ignore[arg-type]
        seconds = time.perf_counter() - started
    kernels = sorted(profiled.key_averages(), key=lambda kernel: -kernel.self_device_time_total)
    total = sum(kernel.self_device_time_total for kernel in kernels) / 1e6
    print(f"the judge's own kernels: {total:.1f} s of {seconds:.1f} s; milliseconds, calls, name")
    for kernel in kernels[:MOST_KERNELS]:
        print(f"{kernel.self_device_time_total / 1e3:10.1f} {kernel.count:7}  {kernel.key[:200]}")


def chosen_tasks(patterns: Sequence[str], most: int) -> list[Task]:
    """Return so many tasks at most, spread over those that match, without those that have no kernel."""
    chosen = evenly(select(open_corpora().ids, patterns), most)
    return [task for task in (load_task(TASKS / name) for name in chosen) if task.baseline_kernel]


def prepared(task: Task, place: Path, options: Options) -> Evaluate:
    """Return a request for the task's own kernel; what is compiled of it stays in `place`."""
    assert task.baseline_kernel is not None
    compiled = Path(tempfile.mkdtemp(dir=place))
    for split in (SEEN, HELDOUT):
        (compiled / split).mkdir()
    candidate = unseen_copy(task.baseline_kernel, place)
    return Evaluate(str(task.path), str(candidate), options, compiled=str(compiled))


def main() -> None:
    """Evaluate each task twice, and watch the second time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", help="ids or patterns")
    parser.add_argument("--platform", default="auto", help="auto, cpu, cuda or rocm")
    parser.add_argument("--most", type=int, default=8, help="tasks at most, spread over those that match")
    parser.add_argument("--effort", choices=[each.value for each in Effort], default=Effort.FULL.value)
    parser.add_argument("--kernels", action="store_true", help="also the kernels of the judge")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no other task after these")
    asked = parser.parse_args()
    tasks = chosen_tasks(asked.tasks, asked.most)
    device, began, done = here(asked.platform), time.monotonic(), 0
    watch = Watch(device.synchronize)
    options = Options(effort=Effort(asked.effort), heldout=asked.effort == Effort.FULL)
    with closing(JudgeService(device)) as judge, tempfile.TemporaryDirectory() as place:
        known: list[Evaluate] = []
        for task in tasks:
            request = prepared(task, Path(place), options)
            said = judge.evaluate(request, Silent())  # type: ignore[arg-type]
            print(f"{time.monotonic() - began:6.1f} s  {task.id}: {said.status}", flush=True)
            known.append(request)
            if time.monotonic() - began > asked.seconds / 2:
                break
        watch.install()
        for request in known:
            judge.evaluate(request, Silent())  # type: ignore[arg-type]
            done += 1
            if time.monotonic() - began > asked.seconds:
                break
        judge.tidy()
        watch.report(done)
        if asked.kernels:
            _print_kernels(judge, known[:done])


if __name__ == "__main__":
    main()

"""Measure what sandbox and workers cost in one evaluation. A step of `arena doctor --full`.

    python tools/split_cost.py --platform cuda

Evaluates the expert of one Triton and of one HIP task, five seen cases each and never built before, with a warm judge,
and adds up what a program without the split would not do: start workers, share buffers with them, have them get ready
before passes, and wait for the baseline's worker where it has not woken the device up in time. A device context of its
own, which a candidate has to pay for wherever it runs, is counted apart, with the baseline's, which is made meanwhile.
Everything is done twice, with the full walls and with `ARENA_SANDBOX=basic`, which leaves the newer ones out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from throughput import unseen_copy  # noqa: E402

from arena.judge.compile import stage as building  # noqa: E402
from arena.judge.evaluate import CandidateEvaluation  # noqa: E402
from arena.judge.process.messages import Evaluate, FromJudge  # noqa: E402
from arena.judge.process.service import JudgeService  # noqa: E402
from arena.judge.workers.worker import ForkServers, Worker  # noqa: E402
from arena.platforms import here  # noqa: E402
from arena.processes.protocol import Bind, Prepare, Release, ToWorker  # noqa: E402
from arena.processes.sandbox import confinement  # noqa: E402
from arena.task.corpus.task_folder import SHARED, TASKS, load_task  # noqa: E402
from arena.task.definition import Task  # noqa: E402
from arena.task.options import Options  # noqa: E402

CHOSEN = ("triton2triton/normalization/rms_norm", "hip2hip/modules/softmax")
REPEATS = 3
CASES = 5
OPTIONS = Options(heldout=False)
OF_THE_SPLIT = ("hosts", "shared buffers", "round trips", "wait for baseline")
Spent = dict[str, list[float]]
Function = Callable[..., Any]


def wrap(owner: Any, name: str, around: Callable[[Function], Function]) -> None:
    """Have a function of a class or a module replaced by what `around` makes of it; a static one stays static."""
    original, static = getattr(owner, name), isinstance(vars(owner).get(name), staticmethod)
    outer = around(original)
    setattr(owner, name, staticmethod(outer) if static else outer)


def with_five_cases(task: Task, root: Path) -> Task:
    """A copy of a task with the first and the last of its seen cases, five in all."""
    folder = root / task.id
    shutil.copytree(task.path, folder)
    definition = yaml.safe_load((folder / "task.yaml").read_text(encoding="utf-8"))
    if SHARED in definition:  # the task that it has its operator from
        shutil.copytree(TASKS / definition[SHARED], root / definition[SHARED], dirs_exist_ok=True)
    lines = (folder / "seen.yaml").read_text(encoding="utf-8").splitlines()
    cases = [line for line in lines if line.startswith("-")]
    assert len(cases) == len(task.seen), f"{task.id}: a case a line is expected"
    kept = cases[: CASES - 2] + cases[-2:]
    (folder / "seen.yaml").write_text("\n".join(kept) + "\n", encoding="utf-8")
    return load_task(folder)


class Silent:
    """A channel to nobody, for the judge's progress."""

    def send(self, message: FromJudge) -> None:
        """Forget it."""


def watch(spent: Spent) -> None:
    """Have every worker that is started, every message and every build leave its seconds in `spent`."""

    def timed(owner: Any, name: str, kind: Callable[..., str]) -> None:
        def around(inner: Function) -> Function:
            def outer(*given: Any, **named: Any) -> Any:
                started = time.perf_counter()
                try:
                    return inner(*given, **named)
                finally:
                    spent[kind(*given, **named)].append(time.perf_counter() - started)

            return outer

        wrap(owner, name, around)

    awake: set[int] = set()

    def kind_of(worker: Worker, message: ToWorker, *_: Any, **__: Any) -> str:
        if isinstance(message, Prepare) and worker._pid not in awake:
            awake.add(worker._pid)
            return "device contexts"
        if isinstance(message, Prepare):
            return "round trips"
        return "shared buffers" if isinstance(message, Bind | Release) else "work"

    timed(ForkServers, "spawn", lambda *_: "hosts")
    timed(Worker, "_exchange", kind_of)
    timed(building, "_held", lambda *_, **__: "compilers")
    timed(CandidateEvaluation, "_await_start", lambda *_: "wait for baseline")


def measure(platform: str) -> dict[str, dict[str, tuple[int, float]]]:
    """By task and by kind: how many in an evaluation, and their seconds together, the median of all repeats."""
    found, spent = {}, defaultdict(list)  # type: tuple[dict[str, dict[str, tuple[int, float]]], Spent]
    watch(spent)
    with closing(JudgeService(here(platform))) as judge, tempfile.TemporaryDirectory() as place:
        for name in CHOSEN:
            task = with_five_cases(load_task(TASKS / name), Path(place) / "tasks")
            assert task.expert is not None
            seen: dict[str, list[tuple[int, float]]] = defaultdict(list)
            for repeat in range(REPEATS + 1):
                candidate = unseen_copy(task.expert, Path(place))
                spent.clear()
                evaluation = judge.evaluate(Evaluate(str(task.path), str(candidate), OPTIONS), Silent())  # type: ignore[arg-type]
                assert evaluation.status == "passed", evaluation.verdicts
                for kind, seconds in spent.items() if repeat else ():  # the first one teaches the judge the baseline
                    seen[kind].append((len(seconds), sum(seconds)))
            found[name] = {
                kind: (max(n for n, _ in all_of), statistics.median(s for _, s in all_of))
                for kind, all_of in seen.items()
            }
    return found


def main() -> None:
    """Measure at both levels, each in a process of its own, and print both beside each other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default="auto", help="auto, cpu, cuda or rocm")
    parser.add_argument("--here", action="store_true", help="at the level of this environment, as JSON")
    asked = parser.parse_args()
    if asked.here:
        print(json.dumps(measure(asked.platform)))
        return
    levels = {}
    for level in ("full", "basic"):
        command = [sys.executable, __file__, "--here", "--platform", asked.platform]
        done = subprocess.run(
            command, env={**os.environ, confinement.SWITCH: level}, stdout=subprocess.PIPE, check=True
        )
        levels[level] = json.loads(done.stdout.splitlines()[-1])
    for name in CHOSEN:
        print(f"{name}: seconds in an evaluation, median of {REPEATS}; full walls, then basic ones")
        for kind in sorted({*levels["full"][name], *levels["basic"][name]}):
            cells = [levels[level][name].get(kind, (0, 0.0)) for level in ("full", "basic")]
            print(f"    {kind:18} " + "   ".join(f"{count:4} times {seconds:7.3f} s" for count, seconds in cells))
        for level in ("full", "basic"):
            parts = [levels[level][name].get(kind, (0, 0.0))[1] for kind in OF_THE_SPLIT]
            print(f"    of the split, {level}: {sum(parts):.3f} s")


if __name__ == "__main__":
    main()

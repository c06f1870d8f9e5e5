"""Evaluate honest kernels beside busy processes, and count which fail a plausibility check: none should.

    python tools/honest_under_load.py [--evaluations 200] [--busy 4]

The kernels are the honest fixtures of tests/cheats and the baselines of two tasks, on the CPU platform.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from arena.judge.performance.plausibility import PLAUSIBILITY_CHECKS
from arena.judge.process.client import JudgeClient
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.options import Options
from tests.candidates import TASK_OF, assembled
from tests.cheat_fixtures import cheat_fixtures

OPTIONS = Options(heldout=False, seeds=1, max_work=5e4, timing_budget_s=0.05, call_timeout_s=30.0)


def spin() -> None:
    """Keep a core busy until the process is killed."""
    while True:
        sum(range(10_000))


@contextmanager
def load(count: int) -> Iterator[None]:
    """Run so many busy processes meanwhile."""
    busy = [multiprocessing.Process(target=spin, daemon=True) for _ in range(count)]
    for process in busy:
        process.start()
    try:
        yield
    finally:
        for process in busy:
            process.kill()


def honest(folder: Path) -> list[tuple[Path, Path]]:
    """Tasks and kernels that are right and cheat in nothing."""
    found = []
    for fixture in cheat_fixtures():
        if fixture.honest and "CPU" not in fixture.meaningless:
            place = folder / f"{fixture.path.parent.name}-{fixture.path.stem}"
            place.mkdir()
            found.append((TASKS / TASK_OF[fixture.path.parent.name], assembled(fixture.path, place)))
    for name in dict.fromkeys(TASK_OF.values()):
        kernel = load_task(TASKS / name).baseline_kernel
        assert kernel is not None
        found.append((TASKS / name, kernel))
    return found


def main() -> int:
    """Evaluate, print every failure, and return 1 where there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=200)
    parser.add_argument("--busy", type=int, default=4)
    asked = parser.parse_args()
    statuses: Counter[str] = Counter()
    noisy = undecided = timed = 0
    with tempfile.TemporaryDirectory() as folder, load(asked.busy), JudgeClient("cpu") as judge:
        for number, (task, kernel) in enumerate(islice(cycle(honest(Path(folder))), asked.evaluations), start=1):
            evaluation = judge.evaluate(task, kernel, OPTIONS)
            statuses[str(evaluation.status)] += 1
            timings = [case.timing for case in evaluation.cases if case.timing is not None]
            timed += len(timings)
            noisy += sum(timing.noisy for timing in timings)
            undecided += sum(bool(timing.undecided) for timing in timings)
            if evaluation.status in PLAUSIBILITY_CHECKS and evaluation.failure is not None:
                print(f"{number}: {task.name} {kernel.parent.name}: {evaluation.failure.detail}", flush=True)
    print(f"{asked.evaluations} evaluations beside {asked.busy} busy processes: {dict(statuses)}")
    print(f"{timed} timings, {noisy} of them noisy, {undecided} with an undecided check")
    return int(any(statuses[str(status)] for status in PLAUSIBILITY_CHECKS))


if __name__ == "__main__":
    sys.exit(main())

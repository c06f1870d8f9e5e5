"""What references cost on a device: drawing inputs, the reference, and the errors of the allowed arithmetic.

    python tools/reference_cost.py 'triton2triton/attention/*' --cases 2

Of each task's largest timed cases it prints the megabytes that a call reads and writes, and milliseconds, each of a
second time. An evaluation draws and asks the reference several times a case, and asks for errors wherever a result is
not within half of the least tolerance.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from arena.judge.correctness.inputs import draw_secret  # noqa: E402
from arena.platforms import here  # noqa: E402
from arena.platforms.base import Platform  # noqa: E402
from arena.task.corpus.corpora import open_corpora  # noqa: E402
from arena.task.corpus.selection import select  # noqa: E402
from arena.task.corpus.task_folder import TASKS, load_task  # noqa: E402
from arena.task.definition import Arguments, Task, arguments  # noqa: E402
from arena.task.numerics.reference import Reference  # noqa: E402

T = TypeVar("T")


def largest(task: Task, count: int) -> list[Arguments]:
    """Return the timed cases that hold most bytes."""
    timed = [arguments(task, case) for case in (*task.seen, *task.heldout) if case.timed]
    return sorted(timed, key=lambda one: one.held_bytes, reverse=True)[:count]


def costs(one: Arguments, reference: Reference, platform: Platform) -> Iterator[float]:
    """Yield milliseconds for drawing, for the reference, and for its errors."""

    def second(work: Callable[[], T]) -> tuple[T, float]:
        work()
        platform.synchronize()
        began = time.perf_counter()
        found = work()
        platform.synchronize()
        return found, (time.perf_counter() - began) * 1e3

    drawn, taken = second(lambda: draw_secret(one, reference, 1, platform.torch_device))
    yield taken
    inputs = {name: values[0] for name, values in drawn.items()}
    expected, taken = second(lambda: reference(one, inputs))
    yield taken
    yield second(lambda: reference.arithmetic_errors(one, inputs, expected))[1]


def main() -> None:
    """Time them task by task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", help="ids or patterns")
    parser.add_argument("--platform", default="auto", help="auto, cpu, cuda or rocm")
    parser.add_argument("--cases", type=int, default=1, help="cases of a task at most")
    asked = parser.parse_args()
    platform = here(asked.platform)
    print("      MB       draw  reference     errors (ms)")
    for name in select(open_corpora().ids, asked.tasks):
        task = load_task(TASKS / name)
        reference = Reference(task.reference_path)
        for one in largest(task, asked.cases):
            taken = " ".join(f"{milliseconds:10.1f}" for milliseconds in costs(one, reference, platform))
            print(f"{one.num_bytes / 1e6:8.1f} {taken}  {name} {one.case.id}", flush=True)


if __name__ == "__main__":
    main()

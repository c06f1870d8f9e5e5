"""Builds the kernels of every task for GPUs that are not here, and says how many built and what a build costs.

    python tools/portability.py                              every task for gfx90a, gfx942, gfx950 and sm_90
    python tools/portability.py --targets gfx1201 'hip2hip/*'

Builds are not taken from the cache. For HIP the seconds are of one dtype; for Triton of one case, its first compilation
of the process included.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from arena.judge.compile.cross_compile import CrossCompilation, Limit
from arena.results.portability import BuildOutcome, TargetBuild
from arena.task.corpus.corpora import load_corpus
from arena.task.corpus.selection import select
from arena.task.definition import Task
from arena.task.options import architectures

DEFAULT = "gfx90a,gfx942,gfx950,sm_90"


def main() -> int:
    """Build, print a line per kernel and the totals; 1 if anything does not build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--targets", default=DEFAULT)
    asked = parser.parse_args()
    targets = architectures([asked.targets])
    corpus = {task.id: task for task in load_corpus()}
    tasks = [corpus[name] for name in select(tuple(corpus), asked.patterns)]
    cross_compilation, builds = CrossCompilation(), []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for task in tasks:
            for kernel in kernels(task):
                # One target at a time: what one costs, not what they cost side by side.
                found = [build for target in targets for build in built(cross_compilation, task, kernel, target)]
                builds += [(task, build) for build in found]
                print(line(task, kernel, found), flush=True)
    cross_compilation.close()
    return totals(builds)


def kernels(task: Task) -> list[Path]:
    """The starting kernel of a task and its expert, as far as it has them."""
    return [path for path in (task.trusted_kernel, task.expert) if path is not None and path.parent == task.path]


def built(cross_compilation: CrossCompilation, task: Task, kernel: Path, target: str) -> tuple[TargetBuild, ...]:
    """One kernel for one target."""
    return cross_compilation.build(task, kernel, task.cases, [target], Limit(120.0), lambda done, total: None)


def line(task: Task, kernel: Path, found: list[TargetBuild]) -> str:
    """One kernel and its targets."""
    parts = [f"{b.target} {b.outcome} {b.builds}/{b.asked} {each(b):.2f} s" for b in found]
    return f"{task.id} {kernel.name}: {', '.join(parts)}"


def each(build: TargetBuild) -> float:
    """Seconds for one dtype or case."""
    return build.seconds / max(build.builds, 1)


def totals(builds: list[tuple[Task, TargetBuild]]) -> int:
    """Counts and seconds by language; the number of kernels that do not build is the exit code's reason."""
    wrong = 0
    for language in ("hip", "triton"):
        mine = [b for task, b in builds if task.task_type.kernel_file.endswith(".hip") == (language == "hip")]
        good = [b for b in mine if b.outcome is BuildOutcome.BUILT]
        wrong += len(mine) - len(good)
        if good:
            costs = [each(build) for build in good]
            count = f"{len(good)} of {len(mine)} kernels × targets built, {sum(b.builds for b in good)} builds"
            print(f"{language}: {count}; seconds each: median {statistics.median(costs):.2f}, most {max(costs):.2f}")
        for build in mine:
            if build.outcome is not BuildOutcome.BUILT:
                print(f"{build.target}: {build.outcome}: {build.detail[:300]}")
    print(f"in all {time.monotonic() - STARTED:.0f} s")
    return 1 if wrong else 0


STARTED = time.monotonic()
if __name__ == "__main__":
    sys.exit(main())

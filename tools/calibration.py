"""Measure how accurate timings on a GPU are (A/A): time kernels against themselves.

    python tools/calibration.py --platform cuda                           twenty tasks on the first GPU
    python tools/calibration.py --platform cuda --tasks expert_kernel --json FILE     this one; a case a line
    python tools/calibration.py runs/full       from records of `arena run configs/full.yaml`; no GPU is needed

One judge evaluates each task's own kernel twice. The first time it measures the baseline, the second time it knows it,
so that the baseline's worker has run less before it is timed. Speedups of a case differ where `z`, the difference of
their logarithms over its standard error, is beyond 3; of 80 cases chance alone makes one such in five rounds.
Exit code 1 where a case of 20 µs and more differs by that.
For a run it prints how far speedups of `noop` are from 1, how often intervals hold 1, drift, experts and cost.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from figures import accuracy

from arena.judge.process.client import JudgeClient
from arena.reports.intervals import NORMAL_QUANTILE, log_error
from arena.results.record import LONG_MS, CaseTiming, Evaluation
from arena.task.corpus.corpora import open_corpora
from arena.task.corpus.selection import select
from arena.task.definition import Task
from arena.task.options import options_of

TASKS = 20
ALWAYS = ("triton2triton/moe/expert_kernel", "triton2triton/gemm/w8a8_block_int8_matmul")
"""kernels that spill, in which a difference was seen"""
BEYOND = 3.0


@dataclass(frozen=True)
class Pair:
    """One timed case beside a baseline that was unknown and then known; speedups are of the kernel over itself."""

    task: str
    case: str
    label: str
    baseline_ms: float
    unknown: float
    known: float
    z: float
    noisy: bool

    @property
    def differs(self) -> bool:
        """Return whether a case that clocks resolve differs by more than its errors."""
        return self.baseline_ms >= LONG_MS and abs(self.z) > BEYOND


def chosen(patterns: list[str]) -> list[str]:
    """Return the tasks of these patterns, or twenty that are spread over the corpus."""
    ids = [name for name in open_corpora(()).ids if not name.startswith("torch2hip/")]
    if patterns:
        return list(select(tuple(ids), patterns))
    others, wanted = [name for name in ids if name not in ALWAYS], TASKS - len(ALWAYS)
    return [*ALWAYS, *(others[place * len(others) // wanted] for place in range(wanted))]


def judged(judge: JudgeClient, task: Task, folder: Path, mark: str, only: tuple[str, ...]) -> Evaluation:
    """Evaluate the task's own kernel, with a comment by which it is no copy of one that was compiled before."""
    assert task.baseline_kernel is not None
    sign = "#" if task.baseline_kernel.suffix == ".py" else "//"
    copy = folder / task.baseline_kernel.name
    copy.write_text(f"{task.baseline_kernel.read_text(encoding='utf-8')}\n{sign} {mark}\n", encoding="utf-8")
    return judge.evaluate(task.path, copy, options_of({"only": only} if only else {}), lambda progress: None)


def pairs(task: str, one: Evaluation, two: Evaluation) -> list[Pair]:
    """Return the cases that both have timed."""
    timings: dict[str, CaseTiming] = {case.case: case.timing for case in two.cases if case.timing}
    found = []
    for case in one.cases:
        if case.timing is None or case.case not in timings:
            continue
        first, second = case.timing.speedup, timings[case.case].speedup
        error = math.hypot(log_error(first), log_error(second))
        z = math.log(second.value / first.value) / error if error else 0.0
        noisy = case.timing.noisy or timings[case.case].noisy
        place = (task, case.case, case.label, case.timing.baseline_ms.value)
        found.append(Pair(*place, first.value, second.value, z, noisy))
    return found


def main() -> int:
    """Evaluate, print each case that differs, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, help="folder of a run: print what its records say, and stop")
    parser.add_argument("--tasks", nargs="+", default=[], help="ids, bare names or globs")
    parser.add_argument("--platform", default="auto")
    parser.add_argument("--only", action="append", default=[], metavar="CASE", help="judge this case alone")
    parser.add_argument("--repeat", type=int, default=1, help="how often with a known baseline")
    parser.add_argument("--json", type=Path, help="write each case as a line of JSON")
    given = parser.parse_args()
    if given.run:
        accuracy.print_run(given.run)
        return 0
    found: list[Pair] = []
    with tempfile.TemporaryDirectory() as place, JudgeClient(given.platform) as judge:
        for name in chosen(given.tasks):
            task = open_corpora(()).load(name)
            one = judged(judge, task, Path(place), "unknown", tuple(given.only))
            mine = []
            for again in range(given.repeat):
                two = judged(judge, task, Path(place), f"known {again}", tuple(given.only))
                mine += pairs(name, one, two)
            worst = max(mine, key=lambda pair: abs(pair.z), default=None)
            worst_case = (
                f"{worst.case} {worst.unknown:.4f} {worst.known:.4f}, z {worst.z:.1f}" if worst else "nothing timed"
            )
            print(f"{name}: {one.status}, {two.status}, {len(mine)} cases; {worst_case}", flush=True)
            found += mine
            if given.json:
                text = "".join(json.dumps(asdict(pair)) + "\n" for pair in found)
                given.json.write_text(text, encoding="utf-8")
    long = [pair for pair in found if pair.baseline_ms >= LONG_MS]
    differing = [pair for pair in long if pair.differs]
    for pair in differing:
        print(f"differs: {pair.task} {pair.case}: {pair.unknown:.4f} → {pair.known:.4f}, z {pair.z:.1f}")
    within = sum(abs(pair.z) <= NORMAL_QUANTILE for pair in long)
    print(f"{len(long)} cases of 20 µs and more: {within} within their interval, {len(differing)} differ")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())

"""Execute what cross-compilation builds for an AMD GPU on the CPU, and compare it with the reference.

    python tools/amd_machine_code.py                        every task's kernel on its smallest seen case, for gfx942
    python tools/amd_machine_code.py --target gfx950 'hip2hip/*'
    python tools/amd_machine_code.py --experts --cases all 'triton2triton/gemm/*'
    python tools/amd_machine_code.py --mnemonics            count the instructions of all code objects

Each kernel gets a line: right, wrong or not_checked (with the instruction), what the source-level emulation makes of
the same inputs, and seconds. Results are kept by the hash of kernel, task and executor; `--again` ignores them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from arena.task.corpus.corpora import load_corpus
from arena.task.corpus.selection import select
from arena.task.definition import Task

ROOT = Path(__file__).resolve().parents[1]
EXECUTOR = ROOT / "arena/platforms/cpu/amd_isa"
READER = ROOT / "arena/platforms/rocm/amd_code_object.py"
ONE = Path(__file__).with_name("machine_code") / "one_kernel.py"
MACHINE, SOURCE = "machine", "source"


@dataclass(frozen=True)
class Result:
    """What came of one kernel in one way of running it."""

    outcome: str
    """`right`, `wrong` or `not_checked`"""
    detail: str
    seconds: float
    """of the executed launches or of the emulated call, builds not included"""
    case: str
    mnemonics: dict[str, int]


def main() -> int:
    """Run what is asked for; 1 where a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--target", default="gfx942", choices=["gfx942", "gfx950"])
    parser.add_argument("--limit-s", type=float, default=120.0, help="seconds that the launches of a kernel may take")
    parser.add_argument("--cases", default="smallest", choices=["smallest", "all"], help="which of the seen cases")
    parser.add_argument(
        "--order", default="together", choices=["together", "first", "last"], help="which wave is first"
    )
    parser.add_argument("--experts", action="store_true", help="the experts instead of the starting kernels")
    parser.add_argument("--no-source", action="store_true", help="leave the source-level emulation out")
    parser.add_argument("--mnemonics", action="store_true", help="count the instructions executed code objects hold")
    parser.add_argument("--again", action="store_true", help="ignore what is kept")
    asked = parser.parse_args()
    corpus = {task.id: task for task in load_corpus()}
    chosen = list(jobs(corpus, asked.patterns, experts=asked.experts))
    return report([(task, *both(task, kernel, asked)) for task, kernel in chosen], mnemonics=asked.mnemonics)


def jobs(corpus: dict[str, Task], patterns: list[str], *, experts: bool) -> Iterator[tuple[Task, Path]]:
    """Tasks with the kernel to run: the one a task starts from, or of torch2hip the solution that it is checked by."""
    for name in select(tuple(corpus), patterns):
        task = corpus[name]
        kernel = task.expert if experts else task.trusted_kernel
        if kernel is not None and (not experts or kernel.parent == task.path):
            yield task, kernel


def both(task: Task, kernel: Path, asked: argparse.Namespace) -> tuple[Result, Result | None]:
    """The machine code and the source-level emulation, with a line of output."""
    machine = kept(task, kernel, MACHINE, asked)
    source = None if asked.no_source else kept(task, kernel, SOURCE, asked)
    of_source = f"; source {source.outcome} {source.seconds:.1f} s" if source else ""
    print(
        f"{task.id} ({machine.case}): {machine.outcome} {machine.seconds:.1f} s{of_source}; {machine.detail}",
        flush=True,
    )
    return machine, source


def kept(task: Task, kernel: Path, way: str, asked: argparse.Namespace) -> Result:
    """What is kept of this kernel, or a run of it in a process of its own."""
    parts = [
        kernel.read_text(),
        way,
        asked.target,
        asked.cases,
        *(path.read_text() for path in sorted(task.path.glob("*.yaml"))),
    ]
    code = (READER, *sorted(EXECUTOR.glob("*.*")))
    parts += [asked.order, *(path.read_text() for path in code)] if way == MACHINE else []
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "unseen-arena" / "machine-code"
    file = cache / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()}.json"
    if file.is_file() and not asked.again:
        return Result(**json.loads(file.read_text()))
    environment = {**os.environ, "TRITON_DEFAULT_FP_FUSION": "1", "OMP_NUM_THREADS": "1"}
    environment.pop("TRITON_INTERPRET", None)
    if way == SOURCE:
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, str(ONE), task.id, str(kernel), way, asked.target, asked.cases]
    command += [asked.order if way == MACHINE else "together", str(asked.limit_s)]
    limit_s = asked.limit_s + 120
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return Result("not_checked", f"no end within {limit_s:.0f} s", limit_s, "", {})
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return Result("not_checked", f"failed: {last[:300]}", 0.0, "", {})
    result = Result(**json.loads(done.stdout.strip().splitlines()[-1]))
    cache.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(result)))
    return result


def report(results: list[tuple[Task, Result, Result | None]], *, mnemonics: bool) -> int:
    """Print counts, seconds and what is not known."""
    counts = Counter(machine.outcome for _, machine, _ in results)
    agree = sum(machine.outcome == "right" == source.outcome for _, machine, source in results if source)
    print(f"{len(results)} kernels: {', '.join(f'{count} {name}' for name, count in counts.most_common())}")
    print(f"right in machine code and source-level emulation: {agree}")
    seconds = [machine.seconds for _, machine, _ in results if machine.outcome != "not_checked"]
    if seconds:
        print(f"seconds: median {statistics.median(seconds):.2f}, most {max(seconds):.2f}")
    for task, machine, source in results:
        if machine.outcome != "right":
            print(f"{machine.outcome}: {task.id}: {machine.detail[:200]} (source {source.outcome if source else '-'})")
    if mnemonics:
        total = Counter[str]()
        for _, machine, _ in results:
            total.update(machine.mnemonics)
        for name, count in total.most_common():
            print(f"{count:8} {sum(name in machine.mnemonics for _, machine, _ in results):4} {name}")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

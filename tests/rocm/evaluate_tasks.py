"""Evaluate kernels of HIP tasks on the simulated device, and write a table: `python -m tests.rocm.evaluate_tasks OUT`.

Started inside the machine, see the Makefile's `rocm-sim`. Checked is correctness alone, on the smallest cases. OUT is a
JSON file that is written after each kernel; right results of the same commit in it are kept. Beside it lies a table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from arena.api.evaluation import Judge
from arena.errors import ArenaError
from arena.results.effort import Effort
from arena.results.record import CaseResult, Split
from arena.results.verdict import Status
from arena.task.corpus.task_folder import load_task
from arena.task.definition import Task
from arena.task.options import Options
from tests.rocm.inside import LAUNCHES

ROOT = Path(__file__).resolve().parents[2]
NOTE = (
    "Simulated, no times: real HIP, ROCr and hipcc on a pretended driver; arena/platforms/cpu/amd_isa executes the "
    "kernels. No AMD GPU was involved. Not shown: times, coherence, concurrency, waits, the kernel's own driver."
)
_FOLDERS = ("tasks/hip2hip/modules", "tasks/torch2hip/modules")
_WORK = 1e5
_CALL_S = 300.0
_DETAIL = 400


class Row(TypedDict):
    """One kernel. `seconds` are those of the simulation, `launches` and `launch_ms` those of the kernel's own code."""

    task: str
    kernel: str
    outcome: str
    seen: str
    heldout: str
    detail: str
    seconds: float
    launches: int
    launch_ms: float


def kernels(patterns: list[str]) -> Iterator[tuple[Task, Path, str]]:
    """Return tasks whose id holds a pattern: first each with its baseline or a known solution, then with its expert."""
    tasks = [load_task(path) for folder in _FOLDERS for path in sorted((ROOT / folder).iterdir())]
    chosen = [task for task in tasks if not patterns or any(pattern in task.id for pattern in patterns)]
    for task in chosen:
        if task.trusted_kernel is not None:
            yield task, task.trusted_kernel, "baseline"
    for task in chosen:
        if task.expert is not None and task.expert != task.trusted_kernel:
            yield task, task.expert, "expert"


def evaluated(judge: Judge, task: Task, kernel: Path, kind: str) -> Row:
    """Return the row of one kernel; a judge that fails with it is a row too."""
    started = time.monotonic()
    row = Row(
        task=task.id,
        kernel=kind,
        outcome="harness failed",
        seen="",
        heldout="",
        detail="",
        seconds=0.0,
        launches=0,
        launch_ms=0.0,
    )
    options = Options(effort=Effort.CORRECTNESS, seeds=1, max_work=_WORK, call_timeout_s=_CALL_S)
    try:
        result = judge.evaluate(task.id, kernel.read_text(encoding="utf-8"), options=options)
        cases = result.evaluation.cases
        row["seen"], row["heldout"] = (_passed(cases, split) for split in Split)
        wrong = [case for case in cases if case.candidate is not Status.PASSED]
        failed = result.evaluation.failure
        row["outcome"] = "right" if cases and not wrong and failed is None else str(result.stage_status)
        row["detail"] = (failed.detail if failed else wrong[0].detail if wrong else "")[:_DETAIL]
    except ArenaError as problem:
        row["detail"] = str(problem)[:_DETAIL]
    row["seconds"] = round(time.monotonic() - started, 1)
    return row


def _passed(cases: Sequence[CaseResult], split: Split) -> str:
    chosen = [case.candidate for case in cases if case.split is split]
    return f"{chosen.count(Status.PASSED)}/{len(chosen)}"


class Launches:
    """Launches of each row, from the file that the device process writes.

    Code that two operators launch is the runtime's own, such as copies and fills: it is left out.
    """

    def __init__(self) -> None:
        self._read = 0
        self._operators: defaultdict[str, set[str]] = defaultdict(set)
        self._of: list[tuple[Row, list[tuple[str, float]]]] = []

    def add(self, row: Row, operator: str) -> None:
        """Assign what was launched since the last call, and count anew for every row."""
        text = LAUNCHES.read_text(encoding="ascii") if LAUNCHES.is_file() else ""
        found = [(code, float(ms)) for code, ms in (line.split() for line in text[self._read :].splitlines())]
        self._read = len(text)
        for code, _ in found:
            self._operators[code].add(operator)
        self._of.append((row, found))
        for one, launched in self._of:
            own = [ms for code, ms in launched if len(self._operators[code]) == 1]
            one["launches"], one["launch_ms"] = len(own), round(statistics.median(own), 1) if own else 0.0


def write(out: Path, rows: list[Row], commit: str) -> None:
    """Write rows as JSON, and a table of them beside it."""
    right = sum(row["outcome"] == "right" for row in rows)
    held = {"note": NOTE, "commit": commit, "right": right, "kernels": len(rows), "rows": rows}
    out.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    lines = [f"{NOTE}\n", f"{right} of {len(rows)} kernels are right (commit {commit}).\n"]
    if medians := [row["launch_ms"] for row in rows if row["launches"]]:
        middle = f"The simulation of a launch took {statistics.median(medians):.1f} ms in the median kernel"
        lines.append(f"{middle}, by the clock of a machine that other work shared: nothing of a GPU.\n")
    lines += ["| task | kernel | outcome | seen | held-out | s of simulation | launches | median ms of simulation |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for row in rows:
        first = (row["task"], row["kernel"], row["outcome"], row["seen"], row["heldout"])
        cells = (*first, str(row["seconds"]), str(row["launches"]), str(row["launch_ms"]))
        lines.append(f"| {' | '.join(cells)} |")
    failed = [row for row in rows if row["outcome"] != "right"]
    lines += ["", *(f"- {row['task']} ({row['kernel']}): {' '.join(row['detail'].split())}" for row in failed)]
    out.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Return 1 where a kernel is not right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a JSON file; the table lies beside it")
    parser.add_argument("tasks", nargs="*", help="parts of task ids; without any, all")
    parser.add_argument("--commit", default="unknown", help="what the checkout is at")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no other kernel after so many")
    asked = parser.parse_args()
    deadline, rows = time.monotonic() + asked.seconds, list[Row]()
    if asked.out.is_file():
        kept = json.loads(asked.out.read_text(encoding="utf-8"))
        same = kept["commit"] == asked.commit
        rows = [row for row in kept["rows"] if same and row["outcome"] == "right"]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    known = {(row["task"], row["kernel"]) for row in rows}
    launches = Launches()
    with Judge("rocm-sim") as judge:
        for task, kernel, kind in kernels(asked.tasks):
            if (task.id, kind) in known or time.monotonic() > deadline:
                continue
            rows.append(evaluated(judge, task, kernel, kind))
            launches.add(rows[-1], task.id.rsplit("/", 1)[-1])
            write(asked.out, rows, asked.commit)
            last = rows[-1]
            said = f"{last['task']} ({kind}): {last['outcome']}, seen {last['seen']}, held-out {last['heldout']}"
            sys.stdout.write(f"simulated, no times: {said} {last['detail']}\n")
            sys.stdout.flush()
    return int(any(row["outcome"] != "right" for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())

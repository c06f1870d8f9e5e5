"""Run the items of `arena doctor --quick` that need no time on the simulated device: `python -m tests.rocm.doctor OUT`.

Started inside the machine, see the Makefile's `rocm-sim`. Items are those of the platform `rocm`, and kernels are
checked for correctness alone. OUT is a JSON file; a table lies beside it.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from arena.checks.doctor import candidates
from arena.checks.doctor.evidence import ItemOutcome, ItemResult
from arena.checks.doctor.items import DoctorItem, chosen
from arena.checks.doctor.quick import Collected, run_items
from arena.results.effort import Effort
from arena.task.options import Options
from tests.rocm.evaluate_tasks import NOTE

NAME = "rocm-sim"
NOT_RUN = {
    "late work is noticed": "one thread takes the packets of all queues, so nothing runs beside the judge",
    "Triton kernel": "Triton's driver needs PyTorch for ROCm",
    "graph capture": "needs time",
    "a kernel that waits": "needs time",
    "two clocks": "needs time",
    "a kernel against itself": "needs time",
}
"""items of the platform `rocm`, with the reason why the simulation leaves them out"""


@dataclass(frozen=True)
class Untimed(candidates.Candidate):
    """A candidate that is checked on the smallest cases, without a timing."""

    def options(self, *, emulated: bool) -> Options:
        """Return options for correctness alone."""
        return Options(effort=Effort.CORRECTNESS, heldout=False, seeds=1, max_work=2e4, call_timeout_s=300.0)


def items(texts: list[str]) -> list[DoctorItem]:
    """Return the items to run, as items of this platform; all, or those with one of the texts in their names."""
    of_rocm = [item for item in chosen(texts) if "rocm" in item.platforms and item.name not in NOT_RUN]
    return [replace(item, platforms=(NAME,)) for item in of_rocm]


def table(results: tuple[ItemResult, ...], commit: str) -> str:
    """Return the table of what was run, and of what was not."""
    lines = [f"{NOTE}\n", f"Items of `arena doctor --quick` (commit {commit}).\n", "| item | outcome | seen |"]
    lines += ["|---|---|---|"]
    lines += [f"| {one.name} | {one.outcome} | {' '.join(one.seen.split()).replace('|', '/')} |" for one in results]
    lines += [f"| {name} | not run | {why} |" for name, why in NOT_RUN.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Return 1 where an item fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a JSON file; the table lies beside it")
    parser.add_argument("--item", action="append", default=[], help="only items with this text in their names")
    parser.add_argument("--commit", default="unknown", help="what the checkout is at")
    asked = parser.parse_args()

    def tell(one: ItemResult) -> None:
        sys.stdout.write(f"simulated, no times: {one.outcome:8} {one.name}: {one.seen}\n")
        sys.stdout.flush()

    for name, candidate in candidates.CANDIDATES.items():
        candidates.CANDIDATES[name] = Untimed(candidate.task, candidate.file)
    evidence = Collected(NAME)
    try:
        results = run_items(items(asked.item), evidence, tell)
    finally:
        evidence.close()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"item": one.name, "outcome": str(one.outcome), "seen": one.seen} for one in results]
    held = {"note": NOTE, "commit": asked.commit, "items": rows, "not_run": NOT_RUN}
    asked.out.write_text(json.dumps(held, indent=1) + "\n", encoding="utf-8")
    asked.out.with_suffix(".md").write_text(table(results, asked.commit), encoding="utf-8")
    return int(any(one.outcome is ItemOutcome.FAIL for one in results))


if __name__ == "__main__":
    raise SystemExit(main())

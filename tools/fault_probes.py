"""Which held-out case of each task rejects which common kernel fault: a record, and a table in Markdown of it.

    python tools/fault_probes.py                      all tasks, some minutes on a CPU; keeps reports/fault-probes.json
    python tools/fault_probes.py rms_norm softmax     print the table of tasks whose id contains one of these words
    python tools/claims.py                            make reports/tables/fault-probes.md of what is kept

A probe leaves in the judge's buffers what a kernel with the fault would leave, and the judge's checks decide:
`arena/checks/tasks/probes.py`. Exit code 1 where a fault that can occur in a task is rejected by no held-out case.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from arena.checks.tasks.probes import FAULTS, MOST_WORK, PROBES, probe_task
from arena.judge.correctness.inputs import secret_generator
from arena.task.corpus.task_folder import TASKS, load_task
from arena.task.numerics.reference import Reference

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "reports" / "fault-probes.json"
Found = Mapping[str, Mapping[str, str]]
MISSED, NOT_APPLICABLE = "**none**", "–"
_WORDS = {
    "hard-coded size": "an axis is handled up to the largest seen size below it",
    "dropped mask": "outputs are stored in whole blocks of 16",
    "power of two": "an axis is handled up to the largest power of two below it",
    "alignment": "rows are read from the 16-byte boundary before them",
    "contiguity": "tensors are read and written as if they were contiguous",
    "int32 offset": "an offset of 2³¹ elements or more wraps; by the sizes alone",
    "one dtype": "tensors are read and written in the dtypes of the first seen case",
    "batch 1": "only the first entry of the leading dimension is written",
    "no empty row": "counts are taken to be at least 1, offsets to ascend",
    "wave size": "of 64 neighbours along a row the second 32 are lost",
}


def cell(found: str) -> str:
    """Return a cell: the case, that none rejects the fault, or that it cannot occur."""
    return NOT_APPLICABLE if found.startswith("-") else found.removeprefix("heldout-") or MISSED


def missed(table: Found) -> list[tuple[str, str]]:
    """Return every task and fault that no held-out case rejects."""
    return [(task, fault) for task, row in table.items() for fault, found in row.items() if not found]


def page(table: Found) -> str:
    """Return the table as Markdown."""
    reasons = {fault: Counter(row[fault][2:] for row in table.values() if row[fault][:1] == "-") for fault in FAULTS}
    lines = [
        "# Kernel faults and the held-out cases that reject them",
        "",
        "Made by `tools/fault_probes.py`. A probe writes the reference's answers with one fault into the buffers of a "
        "held-out case, and the judge's",
        f"checks decide. Cases of at most {MOST_WORK:.0e} operations plus bytes are tried, small ones first; a cell "
        "has the number of the first that rejects",
        f"the fault. {NOT_APPLICABLE}: the fault cannot occur, by the rule below. {MISSED}: no case rejects it.",
        "",
        "| fault | simulated as | tasks | rejected | missed | cannot occur |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for fault in FAULTS:
        cells = [cell(row[fault]) for row in table.values()]
        never = "; ".join(f"{count}: {reason}" for reason, count in reasons[fault].items())
        left = cells.count(MISSED)
        rejected = len(cells) - left - cells.count(NOT_APPLICABLE)
        lines.append(f"| {fault} | {_WORDS[fault]} | {len(cells)} | {rejected} | {left} | {never} |")
    lines += ["", "| task | " + " | ".join(FAULTS) + " |", "| --- |" + " --- |" * len(FAULTS)]
    lines += [f"| {task} | " + " | ".join(cell(row[fault]) for fault in FAULTS) + " |" for task, row in table.items()]
    return "\n".join(lines)


def kept_page() -> str:
    """Return the table of the kept record."""
    return page(json.loads(KEPT.read_text(encoding="utf-8"))["probes"]) + "\n"


def main(words: Sequence[str]) -> int:
    """Print the table of the tasks that the words choose; without words, keep the record of all."""
    assert set(PROBES) < set(_WORDS)
    table = {}
    for path in sorted(TASKS.glob("*/*/*/task.yaml")):
        task = load_task(path.parent)
        if not words or any(word in task.id for word in words):
            print(task.id, file=sys.stderr)
            table[task.id] = dict(probe_task(task, Reference(task.reference_path), secret_generator("cpu")))
    if words:
        print(page(table))
    else:
        KEPT.write_text(json.dumps({"probes": table}, indent=1) + "\n", encoding="utf-8")
    return 1 if missed(table) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

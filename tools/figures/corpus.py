"""Figures of the corpus and of kept logs, as README and docs have them. Used by `tools/claims.py`."""

from __future__ import annotations

import json
import re
from collections import Counter

from arena.integrations.yardstick.table import read_table
from arena.reports.intervals import NORMAL_QUANTILE
from arena.results.record import LONG_MS
from arena.task.corpus.corpora import load_corpus, open_corpora
from arena.task.corpus.split import TaskSplit, tasks_of
from arena.task.definition import TaskType
from figures import kept, production, tables

BLIND_FAULTS = "reports/blind-faults.csv"
"""wrong kernels of an author who saw no case: verdicts at first sight, and with the cases that were added since"""
ADAPTERS = kept.ROOT / "integrations" / "yardsticks"
KERNELBENCH = "reports/kernelbench-h200.jsonl"
KNOWN_BASELINE = tuple(f"reports/h200-known-baseline/{name}.jsonl" for name in ("before", "twenty"))
MACHINE_CODE = tuple(f"reports/machine-code/gfx942-{name}.log" for name in ("kernels", "experts"))
TIMINGS = (
    "reports/doctor-h200/timing-2026-11-22.log",
    "reports/doctor-h200/timing-2026-11-23.log",
    "reports/doctor-h200/timing-2026-11-25.log",
    "reports/doctor-h200/timing-2026-11-25-later.log",
    "reports/doctor-h200/timing-2026-11-26.log",
    "reports/doctor-h200/timing-2026-11-27.log",
)
"""outputs of `arena doctor --timing` on H200s"""
GIVEN = {
    TaskType.HIP2HIP: "a HIP kernel | a faster HIP kernel",
    TaskType.TRITON2TRITON: "a Triton kernel | a faster Triton kernel",
    TaskType.TORCH2HIP: "a PyTorch function | a HIP kernel",
    TaskType.TORCH2TRITON: "a PyTorch function | a Triton kernel",
}
_ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "fla": "flash-linear-attention", "mamba": "Mamba"}
_TOTAL = re.compile(r"(\d+) kernels: (\d+) right\b")
_WORST = re.compile(r"^worst error ([\d.]+)%", re.MULTILINE)
_BOTH = re.compile(r"source-level emulation: (\d+)")
_SECONDS = re.compile(r"seconds: median (\S+), most (\S+)")


def task_types() -> str:
    """Return what each task type gives and asks for, and how many tasks of it there are."""
    count = Counter(task.task_type for task in load_corpus())
    others = [folder for folder in sorted((kept.ROOT / "corpora").iterdir()) if folder.is_dir()]
    beside = Counter(task.task_type for folder in others for task in load_corpus(folder))
    rows = [f"| `{kind}` | {given} | {count[kind]} | {beside[kind]} |" for kind, given in GIVEN.items()]
    head = "| task type | given | asked for | tasks | more, in [`corpora/`](corpora) |"
    return "\n".join([head, "| --- | --- | --- | --- | --- |", *rows])


def split() -> str:
    """Return how many tasks are for evaluation."""
    folders = open_corpora(()).folders
    held = tasks_of(TaskSplit.EVALUATION, folders)
    return f"The corpus declares {len(held)} of its {len(folders)} tasks for evaluation (`tasks/SPLIT.json`)."


def mutants() -> str:
    """Return how many mutants were rejected, and the least of any task."""
    rows = [row for row in tables.quality() if row.counted]
    fates = [fate for row in rows for fate in row.counted]
    rejected = sum(not fate.survived for fate in fates)
    least = min(row.mutants.mutation_score or 0.0 for row in rows if row.mutants is not None)
    return (
        f"Of {len(fates):,} mutants of {len(rows)} tasks {100 * rejected / len(fates):.1f} % were rejected, "
        f"and at least {int(100 * least)} % of each task's."
    )


def blind_faults() -> str:
    """Return how many wrong kernels of authors who saw no case were rejected, then, now and on an H200."""
    rows = kept.rows(BLIND_FAULTS)
    first = sum(row["at_first_sight"] == "rejected" for row in rows)
    since = sum(row["with_cases_added_since"] == "rejected" for row in rows) - first
    left = [row["on_h200"] for row in rows if row["with_cases_added_since"] == "passed" and row["on_h200"]]
    tasks = len({row["task"] for row in rows})
    return (
        f"Authors who saw no case wrote {len(rows)} wrong kernels for {tasks} tasks. The CPU "
        f"platform rejected {100 * first / len(rows):.0f} % at first sight, and cases added since reject {since} more. "
        f"Of {len(left)} others an H200 rejects {left.count('rejected')}."
    )


def adapters() -> str:
    """Return for how many tasks of serving engines there are adapters."""
    found = {file.relative_to(ADAPTERS).parts[1:] for file in ADAPTERS.glob("*/*/*.py")}
    folders = (path.parent.parent.name for path in (kept.ROOT / "tasks" / "triton2triton").glob("*/*/task.yaml"))
    serving = sum(suite != "fundamentals" for suite in folders)
    return f"Adapters exist for {len(found)} of the {serving} tasks."


def engines() -> str:
    """Return what the measured engines' kernels are, and how their speed compares."""
    rows = read_table(production.MEASURED)
    found = sorted({(row["engine"], row["version"]) for row in rows})
    told = [f"{_ENGINES[name]} ({'version not recorded' if at == 'unknown' else at})" for name, at in found]
    return f"{production.summary(rows)} Engines: {', '.join(told)}."


def kernelbench() -> str:
    """Return how the kernels for problems of KernelBench were judged."""
    rows = [json.loads(line) for line in kept.lines(KERNELBENCH)]
    count = Counter((row["candidate"], row["stage"], row["status"]) for row in rows)
    lines = [f"| {kind} | {number} | `{status}` | {stage or '–'} |" for (kind, stage, status), number in count.items()]
    return "\n".join(["| candidate | kernels | status | stopped in |", "| --- | --- | --- | --- |", *lines])


def machine_code() -> str:
    """Return how many kernels and experts were right when their machine code was executed."""
    heads = ("target", "kernels", "right", "right in the source-level emulation too", "seconds, median and most")
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for path in MACHINE_CODE:
        text = "\n".join(kept.lines(path))
        target, what = path.rsplit("/", 1)[1].removesuffix(".log").split("-")
        (count, right), both, spent = _TOTAL.findall(text)[-1], _BOTH.findall(text)[-1], _SECONDS.findall(text)[-1]
        source = both if "source right" in text else "not run"
        lines.append(f"| {target}, {what} | {count} | {right} | {source} | {', '.join(spent)} |")
    return "\n".join(lines)


def known_baseline() -> str:
    """Return how far a kernel beside a known baseline is from the same beside an unknown one."""
    before, after = (list(map(json.loads, kept.lines(path))) for path in KNOWN_BASELINE)
    long = [case for case in after if case["baseline_ms"] >= LONG_MS]
    within = sum(abs(case["z"]) <= NORMAL_QUANTILE for case in long)
    worst = max(long, key=lambda case: abs(case["z"]))
    moved = max((case for case in before if case["baseline_ms"] >= LONG_MS), key=lambda case: abs(case["known"] - 1))
    return (
        f"Of {len(long)} cases of 20 µs and more in {len({case['task'] for case in after})} tasks, {within} agree "
        f"within their 95 % interval. The worst differs by {abs(worst['z']):.1f} standard errors, "
        f"{100 * abs(worst['known'] / worst['unknown'] - 1):.1f} %. Before, `{moved['case']}` of "
        f"`{moved['task'].rsplit('/', 1)[1]}` had {moved['unknown']:.3f}× and {moved['known']:.3f}×."
    )


def clock() -> str:
    """Return how far `arena doctor --timing` was off on kernels of known duration."""
    worst = [float(found) for path in TIMINGS for found in _WORST.findall("\n".join(kept.lines(path)))]
    return f"In {len(worst)} kept runs on H200s the worst error was {min(worst):.2f} to {max(worst):.2f} %."

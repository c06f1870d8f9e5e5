"""Compare our baselines with the kernels that serving engines ship, by task and suite. Used by `tables.py`.

The CSV file is what `arena yardstick` has written on one device. A speedup is the latency of our baseline over that of
the engine's kernel: above 1.5, our starting point is easier to beat than what is in production.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from arena.errors import UsageError
from arena.integrations.yardstick.table import MEAN, Row

ROOT = Path(__file__).resolve().parents[2]
MEASURED = ROOT / "reports" / "production-h200.csv"
MOST = 1.5
"""how much faster than a baseline the engine's kernel may be"""


def suite(row: Row) -> str:
    """Return the suite of a row's task."""
    return row["task"].split("/")[1]


def by_suite(means: Sequence[Row]) -> list[tuple[str, int, float, float, int]]:
    """Return for each suite: tasks, median and greatest speedup of the engines, and how many are beyond `MOST`."""
    groups: dict[str, list[float]] = {}
    for row in means:
        groups.setdefault(suite(row), []).append(float(row["speedup"]))
    return [
        (name, len(found), statistics.median(found), max(found), sum(value > MOST for value in found))
        for name, found in sorted(groups.items())
    ]


def summary(rows: Sequence[Row]) -> str:
    """Return in two sentences how many engines' kernels are much faster than our baselines, and of how many cases."""
    cases = [row for row in rows if row["case"] != MEAN]
    passed = [row for row in cases if row["status"] == "passed"]
    means = [row for row in rows if row["case"] == MEAN and row["speedup"]]
    fast = sum(float(row["speedup"]) > MOST for row in means)
    single = sum(float(row["speedup"]) > MOST for row in passed)
    return (
        f"Of {len({row['task'] for row in rows})} engines' kernels {len(means)} pass a timed case, "
        f"and {len(passed)} of {len(cases)} timed cases are passed. "
        f"In the mean over these, {fast or 'none'} of the {len(means)} {'are' if fast > 1 else 'is'} more than {MOST} "
        f"times as fast as our baseline. In a single case {single} {'is' if single == 1 else 'are'}. "
        "How fast a kernel is in a case that it does not pass is not known."
    )


def page(rows: Sequence[Row]) -> str:
    """Return the comparison as Markdown. Raises `UsageError` where the table has no mean of passed cases."""
    cases = [row for row in rows if row["case"] != MEAN]
    means = [row for row in rows if row["case"] == MEAN and row["speedup"]]
    if not means:
        raise UsageError("the table has no kernel with a case that passed; run `arena yardstick` first")
    devices = ", ".join(sorted({row["device"] for row in rows}))
    overall = math.exp(statistics.fmean(math.log(float(row["speedup"])) for row in means))
    lines = [
        "# Baselines and production kernels",
        "",
        f"`arena yardstick` has measured this on {devices}.",
        "**engine / baseline** is the geometric mean over the timed cases that passed of how many times as fast as our "
        "baseline",
        "the engine's kernel is. [Kernels of serving engines]"
        "(../../docs/evaluate/import.md#measure-kernels-of-serving-engines) says what the cases are.",
        "",
        summary(rows),
        f"Geometric mean over the {len(means)} tasks: {overall:.2f}.",
        "",
        f"| suite | tasks | median engine / baseline | most | tasks above {MOST} |",
        "| --- | --- | --- | --- | --- |",
        *(f"| {name} | {n} | {mid:.2f} | {most:.2f} | {far} |" for name, n, mid, most, far in by_suite(means)),
        "",
        "| task | engine | cases passed | engine / baseline | slowest case | fastest case |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in means:
        own = [one for one in cases if (one["task"], one["engine"]) == (row["task"], row["engine"])]
        passed = [float(one["speedup"]) for one in own if one["status"] == "passed" and one["speedup"]]
        shown = f"{float(row['speedup']):.2f} [{float(row['speedup_low']):.2f}, {float(row['speedup_high']):.2f}]"
        lines.append(
            f"| {row['task'].split('/', 1)[1]} | {row['engine']} {row['version']} | {len(passed)} of {len(own)} "
            f"| {shown} | {min(passed):.2f} | {max(passed):.2f} |"
        )
    return "\n".join(lines)

"""Make the page on bits that counters of the machine pass between workers. Used by `tools/figures/tables.py`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from figures import kept

RECORD = "reports/channels.json"
SHAPE_BITS = 64
"""bits of the sizes of a held-out case: four of 16"""
_FULL = 0.95
"""share of the bits that were left from which on a counter is called exact"""
_VARIANTS = ("later", "alive")
Row = Mapping[str, Any]


def page() -> str:
    """Return the page of the kept record."""
    record = json.loads((kept.ROOT / RECORD).read_text(encoding="utf-8"))
    counters: dict[str, Row] = record["counters"]
    closed = {name: row for name, row in counters.items() if row["wall"]}
    measured = {name: row for name, row in counters.items() if name not in closed}
    parts = [*_head(record), *_table(measured), *_closed(closed), *_meaning(measured)]
    return "\n".join(parts) + "\n"


def _head(record: Row) -> Iterable[str]:
    before, after = record["load"]
    rounds = [count for row in record["counters"].values() for count in _rounds(row)]
    return [
        "# Bits that counters of the machine pass between workers",
        "",
        "The sandbox closes what a worker could leave exactly: `tests/processes/sandbox/test_channels.py` tries it. "
        "Counters and times of the machine remain. This page measures them.",
        "",
        f"- Machine: {record['processor']}, Linux {record['kernel']}. Sandbox: `{record['level']}`.",
        f"- Other work kept the cores busy: the load was {before} before and {after} after. Its noise lowers the bits. "
        "A quiet machine may pass more.",
        "- An exchange: the first worker gets a random number below `numbers` and acts. The second reads the counter. "
        "Both have the sandbox.",
        "- `later`: the first worker has ended, and its folders are deleted, before the second starts. "
        "The time includes both starts.",
        "- In `later` the second worker starts at once. Other work in between destroys most values that only grow.",
        "- `alive`: both live. The second reads before and after the first acts. The time excludes their starts.",
        f"- Each cell is of {min(rounds)} to {max(rounds)} exchanges. Slow exchanges have the fewest.",
        "- Bits: mutual information of number and value, with the correction of Miller and Madow. "
        "It is adjusted for chance by 200 shuffles.",
        "- 0: less than four standard deviations above the shuffles. "
        "≥: nearly all bits that were left arrived, and more may pass.",
        "- Estimates from few exchanges are rough. The decoder knows the value alone, and a better one can find more.",
        "- For first reads, four files are dropped from memory before each exchange, which no worker can do. "
        "A worker finds such files among those that nobody has read.",
    ]


def _rounds(row: Row) -> list[int]:
    return [row[key]["rounds"] for key in (*_VARIANTS, "unconfined") if key in row and row[key]["rounds"]]


def _table(rows: Mapping[str, Row]) -> Iterable[str]:
    yield from (
        "",
        "## Measured",
        "",
        "| counter | read by | numbers | later: bits | bits/s | alive: bits | bits/s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    )
    for name, row in sorted(rows.items(), key=lambda one: [-one[1][key]["bits"] for key in _VARIANTS]):
        cells = [cell for key in _VARIANTS for cell in _cells(row[key], row["levels"])]
        yield f"| {' | '.join([name, _by(row), str(row['levels']), *cells])} |"


def _cells(found: Row, levels: int) -> tuple[str, str]:
    """Return bits and rate; a dash where no value could be read."""
    if not found["rounds"]:
        return f"– ({found['problem']})", "–"
    if not found["bits"]:
        return "0", "0"
    full = found["bits"] >= _FULL * min(math.log2(levels), math.log2(found["rounds"]))
    return f"{'≥ ' if full else ''}{found['bits']:.1f}", _rate(found["rate"])


def _closed(rows: Mapping[str, Row]) -> Iterable[str]:
    yield from (
        "",
        "## Closed or constant",
        "",
        "The last column is the same exchange between living workers without the sandbox, where that is harmless.",
        "",
        "| counter | read by | closed by | later: bits | alive: bits | without the sandbox: bits |",
        "| --- | --- | --- | --- | --- | --- |",
    )
    for name, row in rows.items():
        bits = [_cells(row[key], row["levels"])[0] for key in _VARIANTS]
        free = _cells(row["unconfined"], row["levels"])[0] if "unconfined" in row else "not tried"
        wall = row["wall"].removeprefix("none: ") + _refusal(row)
        yield f"| {' | '.join([name, _by(row), wall, *bits, free])} |"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _by(row: Row) -> str:
    return row["by"] if " " in row["by"] else f"`{row['by']}`"


def _refusal(row: Row) -> str:
    problem = row["alive"]["problem"]
    return f" (`{problem}`)" if problem == "PermissionError" else ""


def _meaning(rows: Mapping[str, Row]) -> Sequence[str]:
    later = {name: row["later"]["bits"] for name, row in rows.items() if row["later"]["bits"]}
    alive = {name: row["alive"]["rate"] for name, row in rows.items() if row["alive"]["bits"]}
    text = [
        "",
        "## Meaning",
        "",
        f"The sizes of a held-out case have about {SHAPE_BITS} bits.",
        "",
    ]
    if later:
        best = max(later, key=later.__getitem__)
        count = math.ceil(SHAPE_BITS / round(later[best], 1))
        total = sum(later.values())
        text += [
            f"- From an evaluation to a later one, {len(later)} of {len(rows)} counters pass bits. The best alone is "
            f"*{best}*: {later[best]:.1f} bits.",
            f"- With that one alone, {SHAPE_BITS} bits take {count} evaluations without an error.",
            f"- The sum is {total:.0f} bits. Several show the same event, and one disturbs another: together they pass "
            "fewer. Larger numbers than were tried can pass more.",
            "- First reads pass about one bit for each file that nobody has read. More than four files were not tried.",
        ]
    if alive:
        best = max(alive, key=alive.__getitem__)
        text += [
            f"- Between living workers, {len(alive)} counters pass bits. The fastest is *{best}*: "
            f"{_rate(alive[best])} bits/s, or {SHAPE_BITS} bits in {SHAPE_BITS / alive[best]:.2g} s.",
            "- Workers of two candidates live at once where several judges share a machine, or one starts ahead.",
        ]
    return [
        *text,
        "- The sandbox alone therefore does not keep sizes from a later candidate that works together with this one. "
        "A machine for each evaluation does.",
        "- Knowledge of a worker reaches its author by a verdict, a log or a time only. That step was not measured.",
    ]

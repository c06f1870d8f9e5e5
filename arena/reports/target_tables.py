"""Builds for other GPUs as data: one row per trial, target and kernel, cells for JSON, and lines of markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from arena.processes.error_line import first_error_line
from arena.reports.plain import markdown_line
from arena.reports.rows import TrialRow
from arena.reports.target_views import TargetsView
from arena.results.portability import KernelUse, TargetBuild, vendor_of

Cell = str | int | float | None
COLUMNS = {
    "run": "str",
    "agent": "str",
    "label": "str",
    "task": "str",
    "attempt": "int64",
    "target": "str",
    "vendor": "str",
    "outcome": "str",
    "builds": "int64",
    "asked": "int64",
    "seconds": "float64",
    "kernel": "object",
    "registers": "Int64",
    "scalar_registers": "Int64",
    "shared_bytes": "Int64",
    "spill_bytes": "Int64",
    "occupancy": "Float64",
    "machine_code": "str",
    "machine_code_detail": "str",
    "detail": "str",
}
"""Columns of `targets.csv` with their types; the capital ones may be empty: registers are whole numbers even then."""


def targets_frame(rows: Sequence[TrialRow]) -> pd.DataFrame:
    """One row per trial, target and kernel; one with empty kernel columns where nothing was built."""
    cells = [_cells(row, build, use) for row in rows for build in row.targets for use in (build.kernels or (None,))]
    return pd.DataFrame(cells, columns=list(COLUMNS)).astype(COLUMNS)


def target_cells(row: TrialRow) -> list[dict[str, Cell]]:
    """The targets of one trial for `report.json`; what its kernels use is in `targets.csv`."""
    return [
        {
            "name": build.target,
            "outcome": str(build.outcome),
            "detail": build.detail,
            "seconds": build.seconds,
            "builds": build.builds,
            "asked": build.asked,
            **_machine_code(build),
        }
        for build in row.targets
    ]


def targets_markdown(view: TargetsView) -> Iterator[str]:
    """The section on targets in `summary.md`, line by line."""
    yield from ("## Targets", "")
    yield f"| Agent | {' | '.join(markdown_line(name).replace('|', ' ') for name in view.names)} | Everywhere |"
    yield "| --- " * (len(view.names) + 2) + "|"
    for agent in view.agents:
        counts = (f"{cell.text} ({cell.rest})" if cell.rest else cell.text for cell in agent.cells)
        yield f"| {' | '.join([agent.agent, *counts, agent.portable])} |"
    yield from ("", "Built of checked, by cross-compilation; what this machine cannot build for is not checked.")
    if view.executed:
        yield "Machine code: executed on the CPU on one small case, which shows wrong code and no speed."
    if view.tied:
        yield from ("", "### Builds only where it was written", "")
    for entry in view.tied:
        where = f"builds for {entry.builds_for}, fails for {entry.fails_for}"
        said = markdown_line(entry.said).replace("`", "'")
        yield f"- **{entry.word}**: {entry.agent}, {entry.task}: {markdown_line(where)}: `{said}`"
    if view.waves:
        yield from ("", "### Right at one wave size only", "")
    for wave in view.waves:
        yield f"- {wave.agent}, {wave.task}: {markdown_line(first_error_line(wave.detail))}"


def _machine_code(build: TargetBuild) -> dict[str, Cell]:
    found = build.machine_code
    said = ("", "") if found is None else (str(found.outcome), found.detail)
    return dict(zip(("machine_code", "machine_code_detail"), said, strict=True))


def _cells(row: TrialRow, build: TargetBuild, use: KernelUse | None) -> dict[str, Cell]:
    cells: dict[str, Cell] = {"run": row.run, "agent": row.agent, "label": row.label, "task": row.task}
    cells |= {"attempt": row.attempt, "target": build.target, "vendor": vendor_of(build.target)}
    cells |= {"outcome": str(build.outcome), "builds": build.builds, "asked": build.asked, "seconds": build.seconds}
    cells |= {"detail": build.detail, **_machine_code(build)}
    if use is None:
        return cells
    scalars = use.scalar_registers if vendor_of(build.target) == "amd" else None
    cells |= {"kernel": use.kernel, "registers": use.registers, "scalar_registers": scalars}
    return cells | {"shared_bytes": use.shared_bytes, "spill_bytes": use.spill_bytes, "occupancy": use.occupancy}

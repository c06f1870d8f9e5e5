"""Performance portability: how much of the roofline an agent's kernels reach on several kinds of device.

For `arena portability`. The efficiency on a device is the fraction of its roofline. The measure is their harmonic
mean, 0 where one device fails (Pennycook, Sewall and Lee, 2016). Latencies of two devices are never in one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import pandas as pd

from arena.errors import UsageError
from arena.reports import formats
from arena.reports.groups import ALL
from arena.reports.intervals import Quantity, Tally, estimate
from arena.reports.measure import Unit
from arena.reports.plain import markdown_line
from arena.reports.rows import TrialRow, trial_rows
from arena.reports.tables import markdown
from arena.results.environment import DeviceFacts
from arena.runs.records import RunRecords

Efficiencies = Mapping[tuple[str, str], float | None]
"""By agent and task; None where a passed trial has no roofline."""


@dataclass(frozen=True)
class PortabilityRow:
    """One agent on one task type: the mean efficiency per device, and the mean over tasks of their harmonic means."""

    agent: str
    task_type: str
    tasks: int
    efficiency: tuple[Quantity, ...]
    portability: Quantity


@dataclass(frozen=True)
class PortabilityTable:
    """Performance portability over the tasks that an agent was given on every device."""

    devices: tuple[str, ...]
    rows: tuple[PortabilityRow, ...]
    notes: tuple[str, ...]


def harmonic_mean(efficiencies: Sequence[float]) -> float:
    """Return |H| / Σ 1/e over the devices, or 0 where one of them fails (Pennycook, Sewall and Lee, 2016, eq. 1)."""
    return 0.0 if 0 in efficiencies else len(efficiencies) / sum(1 / one for one in efficiencies)


def portability_table(runs: Sequence[RunRecords]) -> PortabilityTable:
    """Return the table of runs on several kinds of device.

    Raises:
        UsageError: the runs are of one kind of device, or of an emulation, or have no agent and task in common.
    """
    by_device: dict[str, list[RunRecords]] = {}
    for run in runs:
        device = run.info.environment.device
        if device.emulated:
            raise UsageError(f"run {run.info.run!r} is of the cpu platform, which has no roofline; name runs of GPUs")
        by_device.setdefault(_name(device), []).append(run)
    if len(by_device) < 2:
        raise UsageError(
            f"performance portability needs runs of two kinds of device, these are of {', '.join(by_device) or 'none'}"
        )
    rows = [trial_rows(mine) for mine in by_device.values()]
    return _table(tuple(by_device), rows)


def portability_markdown(table: PortabilityTable) -> str:
    """The table as markdown, with what was left out."""
    cells = [
        {
            "Agent": row.agent,
            "Task type": row.task_type,
            "Tasks": str(row.tasks),
            **{
                f"Efficiency, {device}": formats.quantity(one, Unit.SHARE)
                for device, one in zip(table.devices, row.efficiency, strict=True)
            },
            "Performance portability": formats.quantity(row.portability, Unit.SHARE),
        }
        for row in table.rows
    ]
    return "\n".join([*(f"- Note: {markdown_line(note)}." for note in table.notes), "", markdown(pd.DataFrame(cells))])


def _name(device: DeviceFacts) -> str:
    return f"{device.name} ({device.arch})"


def _table(devices: tuple[str, ...], rows: Sequence[Sequence[TrialRow]]) -> PortabilityTable:
    planned = [{(row.agent, row.task) for row in mine} for mine in rows]
    common = set.intersection(*planned)
    if not common:
        raise UsageError(
            f"no agent has a task in common on {' and '.join(devices)}; run the same configuration on both"
        )
    changed = _changed(rows)
    efficiencies = [_efficiencies(mine) for mine in rows]
    kept = [key for key in dict.fromkeys((row.agent, row.task) for row in rows[0]) if key in common]
    kept = [key for key in kept if key[1] not in changed]
    known = {key: [one[key] for one in efficiencies] for key in kept}
    stated = {key: [one for one in each if one is not None] for key, each in known.items() if None not in each}
    notes = []
    if single := len(set.union(*planned) - common):
        notes.append(f"{single} pairs of agent and task are not in the plan of every device and are left out")
    if changed:
        notes.append(f"{len(changed)} tasks changed between runs and are left out: {', '.join(sorted(changed))}")
    if unknown := len(known) - len(stated):
        notes.append(f"{unknown} pairs of agent and task passed where no roofline is known and are left out")
    if missing := sum(row.status is None for mine in rows for row in mine if (row.agent, row.task) in stated):
        notes.append(f"{missing} planned trials have no record and count as failed; `arena run CONFIG` resumes")
    return PortabilityTable(devices, tuple(_rows(stated)), tuple(notes))


def _changed(rows: Sequence[Sequence[TrialRow]]) -> set[str]:
    hashes: dict[str, set[str]] = {}
    for row in (row for mine in rows for row in mine if row.task_hash):
        hashes.setdefault(row.task, set()).add(row.task_hash)
    return {task for task, found in hashes.items() if len(found) > 1}


def _efficiencies(rows: Sequence[TrialRow]) -> Efficiencies:
    """Mean over attempts of the fraction of the roofline, a failed attempt counting as 0."""
    attempts: dict[tuple[str, str], list[TrialRow]] = {}
    for row in rows:
        attempts.setdefault((row.agent, row.task), []).append(row)
    found: dict[tuple[str, str], float | None] = {}
    for key, mine in attempts.items():
        values = [row.roofline if row.performed else 0.0 for row in mine]
        known = [one for one in values if one is not None]
        found[key] = fmean(known) if len(known) == len(values) else None
    return found


def _rows(stated: Mapping[tuple[str, str], Sequence[float]]) -> list[PortabilityRow]:
    found = []
    for agent in dict.fromkeys(agent for agent, _ in stated):
        tasks = {task: each for (other, task), each in stated.items() if other == agent}
        for task_type in (ALL, *sorted({task.split("/", 1)[0] for task in tasks})):
            mine = [each for task, each in tasks.items() if task_type in (ALL, task.split("/", 1)[0])]
            efficiency = tuple(_mean(one) for one in zip(*mine, strict=True))
            found.append(PortabilityRow(agent, task_type, len(mine), efficiency, _mean(list(map(harmonic_mean, mine)))))
    return found


def _mean(values: Sequence[float]) -> Quantity:
    mean = estimate([Tally(one, 1) for one in values])
    assert mean is not None
    return mean

"""What a report says of other GPUs, as text: the counts, who builds only where it was written, resource use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arena.processes.error_line import first_error_line
from arena.reports import formats, targets
from arena.reports.groups import ALL, Group
from arena.reports.measure import Unit
from arena.reports.rows import TrialRow
from arena.results.portability import MachineCodeOutcome, vendor_of


@dataclass(frozen=True)
class Reach:
    """For which GPUs one candidate builds: a word or a list, what else there is to know, and its tone.

    `loud`: it builds only where it was written, which must not be overlooked.
    """

    text: str
    rest: str = ""
    tone: str = "none"
    loud: bool = False


@dataclass(frozen=True)
class CountView:
    """One agent: built of checked for every target as (text, rest, tone), and the share that builds everywhere."""

    agent: str
    cells: tuple[Reach, ...]
    portable: str


@dataclass(frozen=True)
class TiedView:
    """One candidate that builds only where it was written; `said` is the compiler's telling line."""

    agent: str
    task: str
    word: str
    builds_for: str
    fails_for: str
    said: str


@dataclass(frozen=True)
class WaveView:
    """One candidate that is right at one wave size only."""

    agent: str
    task: str
    detail: str


@dataclass(frozen=True)
class UseView:
    """What one kernel takes of a multiprocessor of one target."""

    target: str
    kernel: str
    registers: str
    scalar_registers: str
    shared: str
    spills: str
    spills_tone: str
    occupancy: str


@dataclass(frozen=True)
class TargetsView:
    """The section on targets."""

    names: tuple[str, ...]
    agents: tuple[CountView, ...]
    tied: tuple[TiedView, ...]
    waves: tuple[WaveView, ...]
    executed: bool
    """whether the machine code of any candidate was executed"""


def targets_view(rows: Sequence[TrialRow], groups: Sequence[Group]) -> TargetsView | None:
    """The section on targets, or None where no candidate was built for any."""
    names = targets.asked_targets(rows)
    if not names:
        return None
    share = {group.label: group.mean["portability"] for group in groups if group.task_type == ALL}
    counts: dict[str, list[Reach]] = {}
    for count in targets.target_counts(rows):
        counts.setdefault(count.label, []).append(_cell(count))
    return TargetsView(
        names,
        tuple(
            CountView(name, tuple(cells), formats.quantity(share[name], Unit.SHARE)) for name, cells in counts.items()
        ),
        tuple(_tied(row, found) for row, found in targets.tied(rows)),
        tuple(WaveView(_who(row), row.task, row.detail) for row in targets.wave_size_dependent(rows)),
        any(build.machine_code is not None for row in rows for build in row.targets),
    )


def reach(row: TrialRow) -> Reach:
    """For which GPUs one candidate builds, for one cell of the task table."""
    found = targets.portability(row)
    if found is None:
        return Reach(formats.NONE)
    if found.word == targets.NOT_CHECKED:
        return Reach(found.word, ", ".join(found.not_checked))
    wrong = targets.wrong_machine_code(row)
    said = [f"fails for {', '.join(found.failed)}"] if found.failed else []
    said += [f"machine code wrong for {', '.join(wrong)}"] if wrong else []
    rest = "; ".join(said)
    if found.word == targets.IN_PART:
        return Reach(", ".join(found.built), rest)
    good = found.word == targets.EVERYWHERE and not wrong
    return Reach(found.word, rest, "good" if good else "bad", found.tied)


def use_views(row: TrialRow) -> tuple[UseView, ...]:
    """What every kernel takes on every target that it was built for."""
    return tuple(
        UseView(
            target=build.target,
            kernel=use.kernel,
            registers=str(use.registers),
            scalar_registers=str(use.scalar_registers) if vendor_of(build.target) == "amd" else formats.NONE,
            shared=formats.size(use.shared_bytes),
            spills=formats.size(use.spill_bytes),
            spills_tone="bad" if use.spill_bytes else "",
            occupancy=formats.percent(use.occupancy),
        )
        for build in row.targets
        for use in build.kernels
    )


def _cell(count: targets.TargetCount) -> Reach:
    said = [f"{count.not_checked} not checked"] if count.not_checked else []
    ran = [f"{number} {str(outcome).replace('_', ' ')}" for outcome, number in count.machine_code.items()]
    said += [f"machine code: {', '.join(ran)}"] if ran else []
    wrong = MachineCodeOutcome.WRONG in count.machine_code
    tone = "none" if not count.checked else "good" if count.built == count.checked else "bad" if not count.built else ""
    return Reach(formats.ratio_of(count.built, count.checked), "; ".join(said), "bad" if wrong else tone)


def _tied(row: TrialRow, found: targets.Portability) -> TiedView:
    said = first_error_line(targets.complaint(row))
    return TiedView(_who(row), row.task, found.word, ", ".join(found.built), ", ".join(found.failed), said)


def _who(row: TrialRow) -> str:
    return row.label if row.attempt == 1 else f"{row.label} #{row.attempt}"

"""For which GPUs candidates build: one verdict in words per trial, and counts per agent and target.

Denominators: a target that the machine could not build for is not checked, and a planned trial without an evaluation
was never built; neither counts. Definitions: docs/evaluate/measures.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from arena.reports.rows import TrialRow
from arena.results.portability import BuildOutcome, MachineCodeOutcome, TargetBuild, one_vendor_only, vendor_of
from arena.results.verdict import Status

EVERYWHERE = "everywhere"
NOWHERE = "nowhere"
IN_PART = "in part"
NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class Portability:
    """For which GPUs one candidate builds. `tied`: only for one vendor, one target, or where it was written.

    `word` is `everywhere`, `nowhere`, `in part`, `not checked`, or names the only place: `amd only`, `gfx950 only`,
    `cpu only`. `built` and `failed` hold the targets as they were asked for and, first, the place the candidate ran
    on where its compile stage settles that.
    """

    word: str
    tied: bool
    built: tuple[str, ...]
    failed: tuple[str, ...]
    not_checked: tuple[str, ...]


@dataclass(frozen=True)
class TargetCount:
    """How many candidates of one agent build for one target, of those that were checked."""

    label: str
    target: str
    built: int
    checked: int
    not_checked: int
    machine_code: dict[MachineCodeOutcome, int] = field(default_factory=dict)
    """of those whose machine code was executed, how many are right, wrong or not checked; none without any"""


def portability(row: TrialRow) -> Portability | None:
    """What is known of one trial; None where it was built for no target."""
    if not row.targets:
        return None
    built = _with(row, BuildOutcome.BUILT)
    failed = _with(row, BuildOutcome.FAILED)
    skipped = _with(row, BuildOutcome.NOT_CHECKED)
    if not built and not failed:
        return Portability(NOT_CHECKED, False, (), (), skipped)
    home = _home(row)
    if home is not None:
        built = (home.target, *built) if home.outcome is BuildOutcome.BUILT else built
        failed = (home.target, *failed) if home.outcome is BuildOutcome.FAILED else failed
    if not failed:
        return Portability(EVERYWHERE, False, built, (), skipped)
    if built:
        only = _only(row.targets if home is None else (home, *row.targets))
        return Portability(f"{only} only" if only else IN_PART, bool(only), built, failed, skipped)
    if row.compiled:
        place = "cpu" if row.emulated else row.arch
        return Portability(f"{place} only", True, (f"{place} (ran there)",), failed, skipped)
    return Portability(NOWHERE, False, (), failed, skipped)


def checked(row: TrialRow) -> bool:
    """Return whether the candidate was built, or refused, for at least one target."""
    return any(build.outcome is not BuildOutcome.NOT_CHECKED for build in row.targets)


def portable(row: TrialRow) -> bool:
    """Return whether the candidate builds for every checked target, and for the GPU that it ran on."""
    found = portability(row)
    return found is not None and found.word == EVERYWHERE


def asked_targets(rows: Sequence[TrialRow]) -> tuple[str, ...]:
    """Every target that a trial was built for, in order of appearance."""
    return tuple(dict.fromkeys(build.target for row in rows for build in row.targets))


def target_counts(rows: Sequence[TrialRow]) -> list[TargetCount]:
    """One count per agent and target, agents and targets in order of appearance."""
    labels = dict.fromkeys(row.label for row in rows)
    return [_count(label, target, rows) for label in labels for target in asked_targets(rows)]


def tied(rows: Sequence[TrialRow]) -> list[tuple[TrialRow, Portability]]:
    """The trials whose candidate builds only where it was written."""
    known = ((row, portability(row)) for row in rows)
    return [(row, found) for row, found in known if found is not None and found.tied]


def wave_size_dependent(rows: Sequence[TrialRow]) -> list[TrialRow]:
    """The trials whose candidate is right at one wave size only: it may build elsewhere and be wrong there."""
    return [row for row in rows if row.status is Status.WAVE_SIZE_DEPENDENT]


def wrong_machine_code(row: TrialRow) -> tuple[str, ...]:
    """The targets for which the candidate's machine code was executed and is wrong."""
    ran = ((build.target, build.machine_code) for build in row.targets)
    return tuple(name for name, found in ran if found is not None and found.outcome is MachineCodeOutcome.WRONG)


def complaint(row: TrialRow) -> str:
    """What the compiler said about the first target that it refused; else what the trial itself failed with."""
    return next((build.detail for build in row.targets if build.outcome is BuildOutcome.FAILED), row.detail)


def _with(row: TrialRow, outcome: BuildOutcome) -> tuple[str, ...]:
    return tuple(build.target for build in row.targets if build.outcome is outcome)


def _home(row: TrialRow) -> TargetBuild | None:
    """The GPU that the candidate ran on, as one more target; None on the CPU platform, or where that is not known."""
    named = {build.target for build in row.targets if build.outcome is not BuildOutcome.NOT_CHECKED}
    if row.emulated or not row.arch or row.arch in named:
        return None
    if row.compiled:
        return TargetBuild(row.arch, BuildOutcome.BUILT)
    if row.status is Status.COMPILE_ERROR:
        return TargetBuild(row.arch, BuildOutcome.FAILED, row.detail or str(row.status))
    return None


def _only(builds: tuple[TargetBuild, ...]) -> str:
    """The only target, where the same vendor has another that failed; else the only vendor; else nothing."""
    built = [build.target for build in builds if build.outcome is BuildOutcome.BUILT]
    failed = {vendor_of(build.target) for build in builds if build.outcome is BuildOutcome.FAILED}
    if len(built) == 1 and vendor_of(built[0]) in failed:
        return built[0]
    return one_vendor_only(builds)


def _count(label: str, target: str, rows: Sequence[TrialRow]) -> TargetCount:
    builds = [build for row in rows if row.label == label for build in row.targets if build.target == target]
    outcomes = [build.outcome for build in builds]
    built, skipped = outcomes.count(BuildOutcome.BUILT), outcomes.count(BuildOutcome.NOT_CHECKED)
    ran = [build.machine_code.outcome for build in builds if build.machine_code is not None]
    machine_code = {outcome: ran.count(outcome) for outcome in MachineCodeOutcome if outcome in ran}
    return TargetCount(label, target, built, len(outcomes) - skipped, skipped, machine_code)

"""What `arena tasks check` says of a task: a verdict per item, and how its mutants fared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from arena.results.messages import message
from arena.results.record import SCHEMA_VERSION
from arena.results.verdict import Status

LEAST_REJECTED = 0.9
"""share of the mutants that build which must be rejected"""


class CheckOutcome(StrEnum):
    """How an item came out."""

    PASSED = "passed"
    """Seen to hold."""
    FAILED = "failed"
    """Seen not to hold."""
    DECLARED = "declared"
    """Does not hold, and task.yaml says why under `exceptions`."""
    NOT_CHECKED = "not_checked"
    """Cannot be seen on this machine or platform."""


@dataclass(frozen=True)
class CheckItem:
    """One thing that must hold of a task. `detail`: what was seen; of a failure, what to do next.

    `seconds`: from the item before to this one; what several need is counted with the first.
    """

    name: str
    outcome: CheckOutcome
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class MutantFate:
    """One mutant: its name, what was changed, and how it ended; `equivalent` holds the reason why it computes the same.

    Of a mutant of the kernel the name is `line:column operator`, with a number where there are several. Of one that
    leaves out part of an input it is `input:dimension operator` or `input operator`, and the line is 0.
    """

    name: str
    line: int
    change: str
    status: Status
    equivalent: str = ""

    @property
    def operator(self) -> str:
        """What kind of mutant it is."""
        return self.name.split(" ")[1]

    @property
    def built(self) -> bool:
        """Return whether there was something to reject."""
        return self.status is not Status.COMPILE_ERROR

    @property
    def survived(self) -> bool:
        """Return whether it passed although nobody declared it equivalent."""
        return self.status is Status.PASSED and not self.equivalent


@dataclass(frozen=True)
class Speed:
    """A kernel (`starting` or `expert`) alone on the largest case of its task, in ms.

    `roofline_ms` is the least time for the case's declared work, None where the device's peaks are unknown; `floor_ms`
    what an empty kernel takes.
    """

    kernel: str
    case: str
    latency_ms: float
    roofline_ms: float | None
    floor_ms: float

    @property
    def roofline_fraction(self) -> float | None:
        """Which part of the latency the declared work needs at least."""
        return None if self.roofline_ms is None else self.roofline_ms / self.latency_ms

    @property
    def times_the_bound(self) -> float:
        """The latency in units of the larger of roofline and floor."""
        return self.latency_ms / max(self.roofline_ms or 0.0, self.floor_ms)


@dataclass(frozen=True)
class TaskCheck:
    """Everything that was seen of one task on one platform. `aa_worst`: greatest deviation of an A/A speedup from 1."""

    task: str
    task_hash: str
    platform: str
    items: tuple[CheckItem, ...]
    mutants: tuple[MutantFate, ...] = ()
    seconds: float = 0.0
    aa_worst: float | None = None
    speeds: tuple[Speed, ...] = ()
    device: str = ""
    how: str = ""
    """what was asked for: the same task asked in the same way need not be checked again"""
    schema_version: int = SCHEMA_VERSION

    @property
    def failed(self) -> tuple[CheckItem, ...]:
        """The items that do not hold."""
        return tuple(item for item in self.items if item.outcome is CheckOutcome.FAILED)

    @property
    def counted(self) -> tuple[MutantFate, ...]:
        """The mutants that count: built, and not declared equivalent."""
        return tuple(fate for fate in self.mutants if fate.built and not fate.equivalent)

    @property
    def mutation_score(self) -> float | None:
        """Share of the counted mutants that were rejected; None where there were none."""
        if not self.counted:
            return None
        return sum(not fate.survived for fate in self.counted) / len(self.counted)


def scored(name: str, counted: Sequence[MutantFate]) -> CheckItem:
    """Return the item of a check for mutants that count, of which there is at least one; it names the survivors."""
    survivors = [fate for fate in counted if fate.survived]
    score = 1 - len(survivors) / len(counted)
    seen = f"{len(counted) - len(survivors)} of {len(counted)} rejected ({score:.0%})"
    named = "; ".join(f"{fate.name} ({fate.change})" for fate in survivors)
    if score >= LEAST_REJECTED:
        return CheckItem(name, CheckOutcome.PASSED, f"{seen}; survivors: {named}" if named else seen)
    rejected = len(counted) - len(survivors)
    of_all = {"rejected": rejected, "count": len(counted), "share": score, "least": LEAST_REJECTED}
    return CheckItem(name, CheckOutcome.FAILED, message("check_mutants_survive", survivors=named, **of_all))

"""What a candidate became when it was built for a cross-compilation target: builds or not, and what its kernels use."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from arena.results.bounds import Count, Number, Seconds, Whole


class BuildOutcome(StrEnum):
    """How building for one target ended."""

    BUILT = "built"
    """Every dtype and every case that was asked for."""
    FAILED = "failed"
    """A compiler refused it, or it needs more than such a device has."""
    NOT_CHECKED = "not_checked"
    """This machine cannot build for the target; says nothing about the candidate."""


class MachineCodeOutcome(StrEnum):
    """What executing the machine code for a target on the CPU showed."""

    RIGHT = "right"
    """Every output is within the tolerance, and nothing else was written."""
    WRONG = "wrong"
    """An output is not, or the code does what a GPU would fault on."""
    NOT_CHECKED = "not_checked"
    """An instruction or a service is not known, or it took too long; says nothing about the candidate."""


@dataclass(frozen=True)
class MachineCode:
    """The machine code for one target, executed on one case: no gate, and no speed.

    `detail`: the error relative to the tolerance, what is wrong, or what is not known. `case`: the case's label.
    """

    outcome: MachineCodeOutcome
    detail: str
    case: str
    seconds: Seconds = 0.0


@dataclass(frozen=True)
class KernelUse:
    """What one compiled kernel takes of a multiprocessor.

    `registers` per thread (AMD: vector registers, accumulators included), `scalar_registers` per wave (AMD only),
    `shared_bytes` per block (LDS; for HIP the static part), `spill_bytes` per thread. `occupancy` is the greatest
    share of the multiprocessor's waves that registers and shared memory admit, None where that is not known.
    """

    kernel: str
    registers: Whole
    shared_bytes: Whole = 0
    spill_bytes: Whole = 0
    scalar_registers: Whole = 0
    occupancy: Number | None = None


@dataclass(frozen=True)
class TargetBuild:
    """The candidate on one target. `kernels`: of everything that was built, the most that each kernel used.

    `builds` counts what was built of what was asked for: libraries by dtype for HIP, cases for Triton.
    """

    target: str
    outcome: BuildOutcome
    detail: str = ""
    seconds: Seconds = 0.0
    builds: Count = 0
    asked: Count = 0
    kernels: tuple[KernelUse, ...] = ()
    machine_code: MachineCode | None = None
    """None where it was not asked for, or nothing was built"""

    def __post_init__(self) -> None:
        if self.outcome is BuildOutcome.BUILT and self.builds != self.asked:
            raise ValueError(f"{self.target}: built means all of {self.asked}, not {self.builds}")
        if self.outcome is not BuildOutcome.BUILT and not self.detail:
            raise ValueError(f"{self.target}: {self.outcome} needs a reason")


def vendor_of(target: str) -> str:
    """`amd` for `gfx…`, `nvidia` for `sm_…`, else `cpu`."""
    if target.startswith("gfx"):
        return "amd"
    return "nvidia" if target.startswith("sm_") else "cpu"


def one_vendor_only(builds: tuple[TargetBuild, ...]) -> str:
    """The only vendor for which a candidate builds, where it failed for every checked target of another; else ""."""
    built = {vendor_of(b.target) for b in builds if b.outcome is BuildOutcome.BUILT}
    failed = {vendor_of(b.target) for b in builds if b.outcome is BuildOutcome.FAILED}
    return next(iter(built)) if len(built) == 1 and failed - built else ""


def most_used(kernels: tuple[KernelUse, ...]) -> tuple[KernelUse, ...]:
    """One entry per kernel name: over its builds, the most of each resource, and the least occupancy."""
    merged: dict[str, KernelUse] = {}
    for use in kernels:
        other = merged.get(use.kernel, use)
        known = [value for value in (use.occupancy, other.occupancy) if value is not None]
        merged[use.kernel] = KernelUse(
            use.kernel,
            max(use.registers, other.registers),
            max(use.shared_bytes, other.shared_bytes),
            max(use.spill_bytes, other.spill_bytes),
            max(use.scalar_registers, other.scalar_registers),
            min(known, default=None),
        )
    return tuple(merged.values())

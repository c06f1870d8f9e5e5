"""Evidence that items check: what children wrote down, and how an item ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from arena.platforms.base import Memory
from arena.platforms.rocm.hip_launch import LaunchSeen
from arena.results.environment import DeviceFacts
from arena.results.portability import TargetBuild
from arena.results.record import Evaluation

DATA = Path(__file__).parent / "data"


class ItemOutcome(StrEnum):
    """How an item ended."""

    PASS = "pass"
    """Seen to work."""
    WARNING = "warning"
    """Works, but less well than it should."""
    FAIL = "fail"
    """Does not work."""
    SKIPPED = "skipped"
    """Not tried, for the reason given."""


@dataclass(frozen=True)
class Answer:
    """An outcome, and what was seen, in one sentence."""

    outcome: ItemOutcome
    seen: str


@dataclass(frozen=True)
class ItemResult:
    """An item that has ended."""

    name: str
    outcome: ItemOutcome
    seen: str
    seconds: float


@dataclass(frozen=True)
class DeviceSeen:
    """Device 0 by its platform's own account. `remarks`: sources that contradict each other."""

    facts: DeviceFacts
    multiprocessors: int
    memory: Memory
    remarks: tuple[str, ...] = ()
    asked_hip: str = ""
    """what hip-python answered, where the platform asks it; `hip_devices` is how many devices it saw"""
    hip_devices: int = 0


@dataclass(frozen=True)
class ExchangeSeen:
    """A small kernel, run by a worker on a buffer that the judge's side shares.

    `wrong_elements` of `elements` came back as something else than what had been written, plus one. `wave_size` is
    what the kernel read from `warpSize`.
    """

    wave_size: int
    elements: int
    wrong_elements: int
    isolation: str


@dataclass(frozen=True)
class MemorySeen:
    """Bytes in use before a buffer was shared, while it was, and after both sides had closed it."""

    buffer_bytes: int
    before_bytes: int
    during_bytes: int
    after_bytes: int


@dataclass(frozen=True)
class ProbeSeen:
    """Findings of the probe so far; `problem` is what stopped it."""

    device: DeviceSeen | None = None
    compiled_s: float | None = None
    launched: LaunchSeen | None = None
    """the probe kernel's code object, launched by hip-python, where the platform can"""
    exchange: ExchangeSeen | None = None
    memory: MemorySeen | None = None
    problem: str = ""


@dataclass(frozen=True)
class VendorBuilds:
    """One language for one vendor: what was built for cross-compilation targets, or what this machine lacks for it."""

    language: str
    vendor: str
    missing: str = ""
    builds: tuple[TargetBuild, ...] = ()


@dataclass(frozen=True)
class CrossSeen:
    """Cross-compilations so far; `problem` is what stopped it."""

    vendors: tuple[VendorBuilds, ...] = ()
    problem: str = ""


class Evidence(Protocol):
    """The source of what items check; each piece is collected when it is first asked for, and kept."""

    def probe(self) -> ProbeSeen:
        """Device, probe kernel and shared buffer."""

    def cross_compilation(self) -> CrossSeen:
        """Builds for other GPUs."""

    def isolation(self) -> str:
        """The level that the judge's workers are behind. Raises `InfrastructureError` where no judge starts."""

    def late_work(self) -> str:
        """Return what the judge measured of late work. Raises `InfrastructureError` where no judge starts."""

    def evaluation(self, candidate: str) -> Evaluation:
        """Return what the judge says of one of a candidate. Raises `InfrastructureError`."""

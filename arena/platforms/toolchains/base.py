"""What every toolchain takes and gives back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from arena.results.portability import KernelUse, vendor_of


@dataclass(frozen=True)
class Target:
    """What to build for: an arch (`cpu`, `sm_90`, `gfx942`) and, where it can be chosen, the wave size."""

    arch: str
    wave_size: int = 32

    @property
    def vendor(self) -> str:
        """`amd`, `nvidia` or `cpu`."""
        return vendor_of(self.arch)


@dataclass(frozen=True)
class Source:
    """One HIP candidate: the text of its `kernel.hip` and of the `task.h` generated for it."""

    kernel: str
    task_header: str
    name: str = "kernel.hip"


@dataclass(frozen=True)
class Built:
    """A shared library with the candidate's entry in it; `kernels` only where resource use was asked for."""

    library: Path
    log: str
    seconds: float
    cached: bool
    kernels: tuple[KernelUse, ...] = ()


@dataclass(frozen=True)
class BuildFailed:
    """The compiler refused the candidate; `log` is what it said, with the candidate's own line numbers."""

    log: str
    seconds: float
    timed_out: bool = False
    printed: str = ""
    """all that the compiler printed, where `log` is a shortened form of it"""

    @property
    def reason(self) -> str:
        """Return what a person reads of it where no candidate is to blame."""
        late = f"the compiler did not end within {self.seconds:.0f} s; repeat the command on a less busy machine"
        return "\n".join(filter(None, (late if self.timed_out else "", self.log.strip())))


@dataclass(frozen=True)
class NativeWorker:
    """The program that loads HIP candidates for one target, and the folders that it needs to read for it."""

    program: Path
    folders: tuple[Path, ...]
    runtime: Path | None = None
    """the library of the device's runtime that it loads before any other, where the loader might find another build"""


class HipToolchain(Protocol):
    """Turns a HIP source into a shared library for one target."""

    name: str

    def version(self) -> str:
        """The compiler's own version line; part of the build cache's key."""

    def build(self, source: Source, target: Target, timeout_s: float = 120.0) -> Built | BuildFailed:
        """Compile, or fetch from the build cache."""

    def native_worker(self, arch: str) -> NativeWorker:
        """The program that loads what was built for `arch`. Raises `InfrastructureError` where it does not build."""

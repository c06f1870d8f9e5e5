"""The HIP compilers that this machine has."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from arena.platforms.toolchains.programs import find_program


@dataclass(frozen=True)
class Compiler:
    """A compiler that a HIP toolchain needs: where it is on this machine, else the Debian package that brings it."""

    vendor: str
    program: str
    path: Path | None
    package: str

    @property
    def missing(self) -> bool:
        """Return whether this machine lacks it."""
        return self.path is None


_PROGRAMS = (
    ("cpu", ("g++", "clang++"), "g++"),
    ("nvidia", ("nvcc",), "nvidia-cuda-toolkit"),
    ("amd", ("hipcc",), "hipcc"),
)


def find() -> tuple[Compiler, ...]:
    """Return one entry per vendor, the missing ones included."""
    return tuple(_find(vendor, programs, package) for vendor, programs, package in _PROGRAMS)


def _find(vendor: str, programs: tuple[str, ...], package: str) -> Compiler:
    if vendor == "amd":
        return Compiler(vendor, programs[0], find_program(programs[0]), package)
    for program in programs:
        path = shutil.which(program)
        if path is not None:
            return Compiler(vendor, program, Path(path), package)
    return Compiler(vendor, programs[0], None, package)

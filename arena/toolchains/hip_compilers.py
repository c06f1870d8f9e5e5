"""Which HIP toolchain builds for a target, and which compilers this machine has."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from arena.toolchains.base import HipToolchain, Target
from arena.toolchains.build_cache import BuildCache
from arena.toolchains.hip_build import Runner, run_plainly
from arena.toolchains.hip_build import default_cache_root as default_cache_root
from arena.toolchains.hip_cpu import HipCpuToolchain
from arena.toolchains.hip_hipcc import HipccToolchain, find_hipcc
from arena.toolchains.hip_nvcc import HipNvccToolchain


@dataclass(frozen=True)
class Compiler:
    """A compiler that a HIP toolchain needs: where it is on this machine, else the Debian package that brings it."""

    vendor: str
    program: str
    path: Path | None
    package: str

    @property
    def missing(self) -> bool:
        """Whether this machine lacks it."""
        return self.path is None


_PROGRAMS = (
    ("cpu", ("g++", "clang++"), "g++"),
    ("nvidia", ("nvcc",), "nvidia-cuda-toolkit"),
    ("amd", ("hipcc",), "hipcc"),
)


def find() -> tuple[Compiler, ...]:
    """Return one entry per vendor, the missing ones included."""
    return tuple(_find(vendor, programs, package) for vendor, programs, package in _PROGRAMS)


def toolchain_for(target: Target, cache_root: Path | None = None, *, run: Runner = run_plainly) -> HipToolchain:
    """Return the toolchain of the target's vendor; it looks for its compiler at the first build."""
    cache = BuildCache(cache_root if cache_root is not None else default_cache_root())
    if target.vendor == "cpu":
        return HipCpuToolchain(cache, run=run)
    if target.vendor == "nvidia":
        return HipNvccToolchain(cache, run=run)
    return HipccToolchain(cache, run=run)


def _find(vendor: str, programs: tuple[str, ...], package: str) -> Compiler:
    if vendor == "amd":
        return Compiler(vendor, programs[0], find_hipcc(), package)
    for program in programs:
        path = shutil.which(program)
        if path is not None:
            return Compiler(vendor, program, Path(path), package)
    return Compiler(vendor, programs[0], None, package)

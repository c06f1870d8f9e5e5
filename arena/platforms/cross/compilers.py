"""Cross-compile: the toolchain for a target, and what this machine can build for."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from arena.errors import InfrastructureError
from arena.extras import install_command
from arena.platforms.cross import triton as triton_cross
from arena.platforms.cuda import hip_nvcc
from arena.platforms.rocm import hip_clang, hip_headers, hip_hipcc, hip_overlay
from arena.platforms.rocm.hip_hipcc import HipccToolchain
from arena.platforms.toolchains.base import HipToolchain
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import Runner, default_cache_root, run_plainly
from arena.platforms.toolchains.programs import find_program
from arena.platforms.toolchains.targets import TARGETS
from arena.results.portability import vendor_of
from arena.task.options import architectures

NVCC_PACKAGES = f"{install_command('cuda-compiler')}, or the CUDA toolkit"


@dataclass(frozen=True)
class Ability:
    """What this machine can build of one language for one vendor: which targets with which tools, or what it lacks."""

    language: str
    vendor: str
    targets: tuple[str, ...] = ()
    tools: str = ""
    missing: str = ""

    @property
    def able(self) -> bool:
        """Return whether it can build for any target."""
        return bool(self.targets)


def hip_cross_toolchain(arch: str, cache_root: Path | None = None, *, run: Runner = run_plainly) -> HipToolchain:
    """The HIP toolchain for any target, whose builds also say what each kernel uses.

    Raises `InfrastructureError` that names the packages this machine lacks, or says that its compiler is too old for
    `arch`; `UsageError` where there is no such target.
    """
    architectures([arch])
    vendor = vendor_of(arch)
    toolchain, archs = _kept(vendor, cache_root or default_cache_root(), run)
    if arch not in archs:
        what = f"{toolchain.name} ({toolchain.version()}) does not know {arch}"
        raise InfrastructureError(f"{what}: install a newer compiler: {_newer(vendor)}")
    return toolchain


def abilities() -> tuple[Ability, ...]:
    """One entry per language and vendor, those included of which this machine can build nothing."""
    return tuple(_ability(language, vendor) for language in ("hip", "triton") for vendor in ("amd", "nvidia"))


def _ability(language: str, vendor: str) -> Ability:
    targets = [arch for arch, facts in TARGETS.items() if facts.vendor == vendor]
    if language == "triton":
        missing = triton_cross.missing(targets[0])
        return Ability(language, vendor, () if missing else tuple(targets), "" if missing else "triton", missing)
    try:
        toolchain, archs = _toolchain(vendor, default_cache_root(), run_plainly)
        tools = f"{toolchain.name}: {toolchain.version()}"
    except InfrastructureError as problem:
        return Ability(language, vendor, missing=str(problem))
    known = tuple(arch for arch in targets if arch in archs)
    return Ability(language, vendor, known, tools, "" if known else _newer(vendor))


@cache
def _kept(vendor: str, cache_root: Path, run: Runner) -> tuple[HipToolchain, frozenset[str]]:
    """One toolchain for all builds of a process. What is missing raises, and is looked for again the next time."""
    return _toolchain(vendor, cache_root, run)


def _toolchain(vendor: str, cache_root: Path, run: Runner) -> tuple[HipToolchain, frozenset[str]]:
    """The toolchain, and the archs that its compiler knows."""
    kept = BuildCache(cache_root)
    return _for_nvidia(kept, run) if vendor == "nvidia" else _for_amd(kept, run)


def _for_nvidia(kept: BuildCache, run: Runner) -> tuple[HipToolchain, frozenset[str]]:
    nvcc = hip_nvcc.find_nvcc()
    torch = importlib.util.find_spec("torch") is not None
    _need(
        (f"nvcc ({NVCC_PACKAGES})", nvcc is not None),
        ("g++ (the Debian package g++), which nvcc calls", shutil.which("g++") is not None),
        ("PyTorch, for its CUDA↔HIP name table", torch),
    )
    assert nvcc is not None
    return hip_nvcc.HipNvccToolchain(kept, compiler=str(nvcc), run=run, resources=True), hip_nvcc.known_archs(nvcc)


def _for_amd(kept: BuildCache, run: Runner) -> tuple[HipToolchain, frozenset[str]]:
    """ROCm's own compiler where it is installed, unless clang with the overlay is there and knows more targets."""
    options: list[tuple[HipToolchain, frozenset[str]]] = []
    if find_program(HipccToolchain.program) is not None:
        rocm = HipccToolchain(kept, run=run, resources=True)
        options.append((rocm, rocm.archs()))
    try:
        options.append(_clang(kept, run))
    except InfrastructureError:
        if not options:
            raise
    return max(options, key=lambda option: len(option[1] & TARGETS.keys()))


def _clang(kept: BuildCache, run: Runner) -> tuple[HipToolchain, frozenset[str]]:
    clang = hip_clang.find_clang()
    _need(
        (f"clang++ for AMD GPUs ({hip_clang.INSTALL})", clang is not None),
        (
            f"AMD's device libraries (the Debian package {hip_overlay.LIBRARIES_PACKAGE})",
            hip_overlay.device_libraries() is not None,
        ),
        (f"HIP headers ({hip_headers.INSTALL})", hip_headers.find() is not None),
    )
    assert clang is not None
    return hip_clang.HipClangToolchain(kept, run=run, resources=True), hip_hipcc.known_archs(clang)


def _need(*things: tuple[str, bool]) -> None:
    missing = [what for what, present in things if not present]
    if missing:
        raise InfrastructureError(f"missing: {'; '.join(missing)}")


def _newer(vendor: str) -> str:
    return NVCC_PACKAGES if vendor == "nvidia" else hip_clang.INSTALL

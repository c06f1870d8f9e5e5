"""The HIP toolchain of each target: hipcc, nvcc, or the emulation on the CPU platform."""

from __future__ import annotations

from pathlib import Path

from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.cuda.hip_nvcc import HipNvccToolchain
from arena.platforms.rocm.hip_hipcc import HipccToolchain
from arena.platforms.toolchains.base import HipToolchain, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import Runner, default_cache_root, run_plainly


def toolchain_for(target: Target, cache_root: Path | None = None, *, run: Runner = run_plainly) -> HipToolchain:
    """Return the toolchain of the target's vendor; it looks for its compiler at the first build."""
    cache = BuildCache(cache_root if cache_root is not None else default_cache_root())
    if target.vendor == "cpu":
        return HipCpuToolchain(cache, run=run)
    if target.vendor == "nvidia":
        return HipNvccToolchain(cache, run=run)
    return HipccToolchain(cache, run=run)

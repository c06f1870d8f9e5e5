"""HIP for AMD: the candidate's source as it is, through ROCm's hipcc."""

from __future__ import annotations

import shutil
from functools import cached_property

from arena.errors import InfrastructureError
from arena.toolchains.base import BuildFailed, Built, Source, Target
from arena.toolchains.build_cache import BuildCache
from arena.toolchains.hip_build import Recipe, Runner, build_cached, compiler_environment, run_plainly

FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC")


class HipccToolchain:
    """Builds for `gfxXXX`, at the wave size that the architecture has by default."""

    name = "hipcc"

    def __init__(self, cache: BuildCache, *, compiler: str = "hipcc", run: Runner = run_plainly) -> None:
        self._cache = cache
        self._wanted = compiler
        self._run = run

    def version(self) -> str:
        """hipcc's own version lines, which name HIP and the clang below it."""
        return self._version

    def build(self, source: Source, target: Target, timeout_s: float = 120.0) -> Built | BuildFailed:
        """Compile, or fetch from the build cache. Raises `InfrastructureError` where hipcc is missing."""
        if target.vendor != "amd":
            raise ValueError(f"not an AMD target: {target}")
        command = [self.compiler, f"--offload-arch={target.arch}", *FLAGS, "-I.", "-x", "hip", source.name]
        files = {source.name: source.kernel, "task.h": source.task_header}
        recipe = Recipe(files, command, "kernel.so", {"compiler": self._version})
        return build_cached(recipe, self._cache, timeout_s=timeout_s, run=self._run)

    @cached_property
    def compiler(self) -> str:
        """The path of hipcc."""
        path = shutil.which(self._wanted)
        if path is None:
            raise InfrastructureError("hipcc is not on PATH: install ROCm (Debian: hipcc)")
        return path

    @cached_property
    def _version(self) -> str:
        with self._cache.staging() as scratch:
            environment = compiler_environment(scratch)
            done = self._run([self.compiler, "--version"], timeout_s=60.0, cwd=scratch, env=environment)
        lines = [line.strip() for line in done.output.splitlines() if "version" in line.lower()]
        return "; ".join(lines) or done.output.strip()

"""HIP for AMD: the candidate's source as it is, through ROCm's hipcc."""

from __future__ import annotations

from arena.toolchains.base import BuildFailed, Built, Source, Target
from arena.toolchains.hip_build import Recipe, SdkToolchain, build_cached

FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC")


class HipccToolchain(SdkToolchain):
    """Builds for `gfxXXX`, at the wave size that the architecture has by default."""

    name = "hipcc"
    program = "hipcc"
    install = "install ROCm (Debian: hipcc)"

    def build(self, source: Source, target: Target, timeout_s: float = 120.0) -> Built | BuildFailed:
        """Compile, or fetch from the build cache. Raises `InfrastructureError` where hipcc is missing."""
        if target.vendor != "amd":
            raise ValueError(f"not an AMD target: {target}")
        command = [self.compiler, f"--offload-arch={target.arch}", *FLAGS, "-I.", "-x", "hip", source.name]
        files = {source.name: source.kernel, "task.h": source.task_header}
        recipe = Recipe(files, command, "kernel.so", {"compiler": self._version})
        return build_cached(recipe, self._cache, timeout_s=timeout_s, run=self._run)

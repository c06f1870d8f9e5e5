"""HIP for AMD without ROCm: upstream clang, with headers and device libraries from an overlay folder."""

from __future__ import annotations

import shutil
from functools import cached_property
from pathlib import Path

from arena.errors import InfrastructureError
from arena.platforms.rocm.hip_hipcc import known_archs
from arena.platforms.rocm.hip_overlay import overlay
from arena.platforms.toolchains.base import BuildFailed, Built, NativeWorker, Source, Target
from arena.platforms.toolchains.hip_build import SdkToolchain
from arena.platforms.toolchains.hip_resources import AMD_FLAGS
from arena.platforms.toolchains.targets import TARGETS

NEWEST, OLDEST = 22, 17
PACKAGES = tuple(f"{name}-N" for name in ("clang", "lld", "llvm", "clang-tools"))
INSTALL = f"install the Debian packages {' '.join(PACKAGES)} with N from {OLDEST} to {NEWEST} (tools/setup.sh does)"
FLAGS = (
    *("-O3", "-std=c++17", "-shared", "-fPIC"),
    "-no-hip-rt",  # there is no HIP runtime to link: the library is not loaded here
    "-mcode-object-version=5",  # the newest that Debian's device libraries know
)
_HELPERS = ("ld.lld", "clang-offload-bundler", "llvm-as")
_PLACES = ("/opt/rocm/llvm/bin/clang++", "/opt/rocm/lib/llvm/bin/clang++")


class HipClangToolchain(SdkToolchain):
    """Builds for `gfxXXX`, at the wave size that the architecture has by default. What it builds is never run."""

    name = "hip-clang"
    program = "clang++"
    install = INSTALL

    def build(self, source: Source, target: Target, timeout_s: float = 120.0) -> Built | BuildFailed:
        """Compile, or fetch from the build cache. Raises `InfrastructureError` naming what is missing."""
        facts = TARGETS.get(target.arch)
        if facts is None or facts.vendor != "amd":
            raise ValueError(f"not an AMD target: {target}")
        rocm = self.rocm
        command = [
            *(self.compiler, "-x", "hip", f"--offload-arch={target.arch}", *FLAGS, *self._flags(AMD_FLAGS)),
            # Clang 22 no longer defines it, and HIP 6.2's cooperative groups are written with it.
            *("-Wno-builtin-macro-redefined", f"-D__AMDGCN_WAVEFRONT_SIZE={facts.wave_size}"),
            *(f"--rocm-path={rocm}", f"-I{rocm / 'include'}", "-I.", source.name),
        ]
        return self._built(source, command, {"rocm": rocm.name}, self._amd_resources(target.arch), timeout_s)

    def native_worker(self, arch: str) -> NativeWorker:
        """There is none: without ROCm nothing is loaded."""
        raise InfrastructureError(f"a HIP worker for {arch} needs ROCm's hipcc; install ROCm")

    @cached_property
    def compiler(self) -> str:
        """The path of the newest clang++ that can build for AMD. Raises `InfrastructureError` where there is none."""
        found = shutil.which(self._wanted) if self._wanted != self.program else find_clang()
        if found is None:
            raise InfrastructureError(f"no clang++ that builds for AMD GPUs: {self.install}")
        return str(found)

    @cached_property
    def rocm(self) -> Path:
        """The overlay. Raises `InfrastructureError` naming what it lacks."""
        return overlay(self._cache, Path(self.compiler))


def find_clang() -> Path | None:
    """The newest clang++ with the amdgcn target, a linker and a bundler, where its other programs lie."""
    names = [f"clang++-{number}" for number in range(NEWEST, OLDEST - 1, -1)]
    for name in (*names, "clang++", "amdclang++", *_PLACES):
        found = shutil.which(name)
        if found is None:
            continue
        beside = Path(found).resolve().parent  # Debian's are links into the folder of one LLVM version
        path = beside / "clang++" if (beside / "clang++").is_file() else Path(found)
        if known_archs(path) and all((path.parent / helper).exists() for helper in _HELPERS):
            return path
    return None

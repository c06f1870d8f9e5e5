"""HIP for AMD: the candidate's source as it is, through ROCm's hipcc."""

from __future__ import annotations

import re
import shutil
from functools import cache, cached_property
from pathlib import Path

from arena.errors import InfrastructureError
from arena.platforms.rocm.runtime_library import loaded_runtime, needed_files, require_same_runtime
from arena.platforms.toolchains.base import BuildFailed, Built, NativeWorker, Source, Target
from arena.platforms.toolchains.hip_build import UNIT, SdkToolchain
from arena.platforms.toolchains.hip_resources import AMD_FLAGS
from arena.platforms.toolchains.hip_worker import WORKER_FLAGS, WORKER_SOURCE, build_worker
from arena.platforms.toolchains.programs import find_program
from arena.processes import process

FLAGS = ("-O3", "-std=c++17", "-fPIC")
LINK_FLAGS = ("-shared", "-Wl,-z,defs")
_CLANG_FOLDER = re.compile(r"^InstalledDir: *(.+)$", re.MULTILINE)


class HipccToolchain(SdkToolchain):
    """Builds for `gfxXXX`, at the wave size that the architecture has by default; the GPU need not be there."""

    name = "hipcc"
    program = "hipcc"
    install = "install ROCm (Debian: hipcc)"

    @cached_property
    def compiler(self) -> str:
        """The path of hipcc. Raises `InfrastructureError` where it is missing."""
        found = shutil.which(self._wanted) if self._wanted != self.program else find_program(self.program)
        if found is None:
            raise InfrastructureError(f"{self._wanted} is neither on PATH nor below ROCM_PATH: {self.install}")
        return str(found)

    def build(self, source: Source, target: Target, timeout_s: float = 120.0) -> Built | BuildFailed:
        """Compile, or fetch from the build cache. Raises `InfrastructureError` where hipcc is missing."""
        if target.vendor != "amd":
            raise ValueError(f"not an AMD target: {target}")
        flags = (*FLAGS, *self._flags(AMD_FLAGS))
        command = [self.compiler, f"--offload-arch={target.arch}", *flags, "-I.", "-x", "hip", source.name]
        link = [self.compiler, f"--offload-arch={target.arch}", *LINK_FLAGS, UNIT]
        return self._built(source, command, {}, self._amd_resources(target.arch), timeout_s, link)

    def native_worker(self, arch: str) -> NativeWorker:
        """The program that loads candidates on AMD GPUs of `arch`: built once."""
        command = [self.compiler, *WORKER_FLAGS, f"--offload-arch={arch}", "-x", "hip", str(WORKER_SOURCE), "-ldl"]
        built = build_worker(command, {"compiler": self._version}, self._cache, self._run)
        runtime = loaded_runtime()
        if runtime is None:
            return NativeWorker(built, (built.parent,))
        require_same_runtime(built, runtime, self.compiler)
        return NativeWorker(built, (built.parent, *needed_files(runtime)), runtime)

    def archs(self) -> frozenset[str]:
        """The GPUs that its clang can compile for; none where it does not say where that lies."""
        folder = _CLANG_FOLDER.search(self._asked)
        clang = Path(folder[1].strip()) / "clang++" if folder else None
        return known_archs(clang) if clang is not None and clang.is_file() else frozenset()


@cache
def known_archs(clang: Path) -> frozenset[str]:
    """The AMD GPUs that a clang can compile for, by its own word; none where it lacks the target."""
    done = process.run([clang, "--target=amdgcn", "--print-supported-cpus"], timeout_s=30.0)
    return frozenset(re.findall(r"^\s+(gfx[0-9a-f]+)$", done.output, re.MULTILINE)) if done.ok else frozenset()

"""HIP for NVIDIA: the candidate's source as it is, through nvcc with a generated HIP header set."""

from __future__ import annotations

import importlib.util
import re
import shutil
from functools import cache, cached_property
from pathlib import Path

from arena.platforms.cuda.hip_nvcc_headers import header_set, runtime_names
from arena.platforms.toolchains.base import BuildFailed, Built, NativeWorker, Source, Target
from arena.platforms.toolchains.build_cache import content_key
from arena.platforms.toolchains.hip_build import UNIT, SdkToolchain
from arena.platforms.toolchains.hip_reads import ASSEMBLED
from arena.platforms.toolchains.hip_resources import NVIDIA_FLAGS
from arena.platforms.toolchains.hip_worker import WORKER_FLAGS, WORKER_SOURCE, build_worker
from arena.processes import process

WAVE_SIZE = 32
FLAGS = (
    *("-O3", "-std=c++17", "-Xcompiler", "-fPIC"),
    *("--expt-relaxed-constexpr", "--extended-lambda"),  # both are plain HIP
    # nvcc reads device code once for the host too, where CUDA still declares, as deprecated, shuffles without a mask.
    "-Wno-deprecated-declarations",
    "-diag-suppress=69",  # the truncation of HIP's 64-bit lane masks to CUDA's 32 bits
    *("-Xcompiler", rf"-Wa\,--MD\,{ASSEMBLED}"),  # what the host's assembler reads
)
# The static CUDA runtime shares the primary context with every other copy, and has no path to get wrong.
LINK_FLAGS = ("-shared", "-cudart", "static", "-Xlinker", "-z", "-Xlinker", "defs")


class HipNvccToolchain(SdkToolchain):
    """Builds for `sm_XX`."""

    name = "hip-nvcc"
    program = "nvcc"
    install = "install the CUDA toolkit (Debian: nvidia-cuda-toolkit)"

    def build(self, source: Source, target: Target, timeout_s: float = 120.0) -> Built | BuildFailed:
        """Compile, or fetch from the build cache. Raises `InfrastructureError` where nvcc or torch is missing."""
        if target.vendor != "nvidia" or target.wave_size != WAVE_SIZE:
            raise ValueError(f"not an NVIDIA target with a wave size of 32: {target}")
        headers = self._headers
        command = [
            *(self.compiler, *FLAGS, *self._flags(NVIDIA_FLAGS), f"-arch={target.arch}", f"-I{headers}", "-I."),
            *("-x", "cu", source.name),
        ]
        link = [self.compiler, *LINK_FLAGS, f"-arch={target.arch}", UNIT]
        resources = self._nvidia_resources(target.arch)
        return self._built(source, command, {"headers": headers.name}, resources, timeout_s, link)

    def native_worker(self, arch: str) -> NativeWorker:
        """The program that loads candidates on NVIDIA GPUs of `arch`: built once."""
        command = [self.compiler, *WORKER_FLAGS, "-cudart", "static", f"-arch={arch}", f"-I{self._headers}"]
        command += ["-x", "cu", str(WORKER_SOURCE), "-ldl"]
        built = build_worker(command, {"compiler": self._version}, self._cache, self._run)
        return NativeWorker(built, (built.parent,))

    @cached_property
    def _headers(self) -> Path:
        """The include folder: written once per content, whose hash names it."""
        texts = header_set(runtime_names())
        key = content_key(texts)
        entry = self._cache.find(key)
        if entry is not None:
            return entry
        with self._cache.staging() as staging:
            folder = staging / "include"
            for name, text in texts.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
            return self._cache.publish(folder, key)


def find_nvcc() -> Path | None:
    """The nvcc on PATH, else the one of the PyPI packages of CUDA's compiler, else None."""
    on_path = shutil.which("nvcc")
    if on_path is not None:
        return Path(on_path)
    found = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in (found.submodule_search_locations or ())] if found is not None else []
    compilers = (path for folder in folders for path in sorted(folder.glob("cu*/bin/nvcc"), reverse=True))
    return next((path for path in compilers if path.is_file()), None)


@cache
def known_archs(nvcc: Path) -> frozenset[str]:
    """The NVIDIA GPUs (`sm_90`) that an nvcc can compile for, by its own word."""
    done = process.run([nvcc, "--list-gpu-arch"], timeout_s=30.0)
    return frozenset(f"sm_{number}" for number in re.findall(r"^compute_(\w+)$", done.output, re.MULTILINE))

"""HIP for the CPU: the candidate's source, rewritten, through a C++ compiler with this project's HIP header."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from arena.errors import InfrastructureError, MachineError
from arena.platforms.cpu.hip.diagnosis import explain
from arena.platforms.cpu.hip.source import rewrite
from arena.platforms.toolchains.base import BuildFailed, Built, NativeWorker, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import (
    ASSEMBLY_NAME,
    KEEP_OBJECT,
    UNIT,
    Recipe,
    Runner,
    answered,
    build_cached,
    folder_texts,
    run_plainly,
)
from arena.platforms.toolchains.hip_scan import TooLong
from arena.platforms.toolchains.hip_worker import WORKER_FLAGS, WORKER_SOURCE, build_worker

FOLDER = Path(__file__).parent
WAVE_SIZES = (32, 64)
_OF_AMD = (
    "-D__HIP_PLATFORM_AMD__=1",
    "-D__AMD__=1",
    "-D__AMDGPU__=1",
    "-D__AMDGCN__=1",
    "-D__GFX9__=1",
    "-D__AMDGCN_WAVEFRONT_SIZE=64",
    "-D__AMDGCN_WAVEFRONT_SIZE__=64",
)
"""what hipcc defines for GPUs of 64 lanes, without names of single ones; at 32 lanes the vendor is left open"""
CODE_FLAGS = (
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-ffp-contract=off",  # the same results on every machine, whether or not it has FMA
    "-fno-strict-aliasing",  # kernels reinterpret memory as vectors
)
# A vector access at an address that is no multiple of its size ends the process: x86 would allow 8 bytes and less.
ALIGNMENT_FLAGS = ("-fsanitize=alignment", "-fsanitize-undefined-trap-on-error")
LIBRARY_FLAGS = (
    "-shared",
    "-pthread",
    "-Wl,-z,defs",
    "-Wl,-Bsymbolic",
    "-Wl,--exclude-libs,ALL",
)
# Two candidates in one process must not share their `__shared__` variables; clang++ never makes them unique.
GNU_FLAGS = ("-fno-gnu-unique",)
RUNTIME_NAME = "libhip_cpu.so"
_PROBE = 'extern "C" void jump_fcontext(); extern "C" void probe() { jump_fcontext(); }\n'


class HipCpuToolchain:
    """Builds for the arch `cpu` at wave size 32 or 64."""

    name = "hip-cpu"

    def __init__(self, cache: BuildCache, *, compiler: str | None = None, run: Runner = run_plainly) -> None:
        self._cache = cache
        self._compiler = compiler
        self._run = run

    def version(self) -> str:
        """The C++ compiler's first version line."""
        return self._version

    def build(self, source: Source, target: Target, timeout_s: float = 120.0) -> Built | BuildFailed:
        """Compile, or fetch from the build cache. Raises `InfrastructureError` where the machine lacks a tool.

        At 64 lanes with AMD's macros; without them where what they lead to, such as AMD's builtins, does not compile.
        """
        if target.vendor != "cpu" or target.wave_size not in WAVE_SIZES:
            raise ValueError(f"not a CPU target with a wave size of 32 or 64: {target}")
        outcome = self._build(source, _defined(target), timeout_s)
        if target.wave_size == 64 and isinstance(outcome, BuildFailed) and not outcome.timed_out:
            of_no_vendor = self._build(source, _defined(target)[:1], timeout_s)
            return of_no_vendor if isinstance(of_no_vendor, Built) else outcome
        return outcome

    def _build(self, source: Source, defined: Sequence[str], timeout_s: float) -> Built | BuildFailed:
        command = [
            *(self.compiler, *CODE_FLAGS, *ALIGNMENT_FLAGS, "-fno-semantic-interposition", "-pthread"),
            *(() if "clang" in self._version else GNU_FLAGS),
            *(*defined, f"-I{FOLDER / 'include'}", "-I."),
            *(KEEP_OBJECT, "-x", "c++", "rewritten.cpp"),
        ]
        link = [self.compiler, *LIBRARY_FLAGS, KEEP_OBJECT, UNIT, str(self.runtime)]
        try:
            rewritten = rewrite(source.kernel, source.name)
        except TooLong as problem:
            return BuildFailed(str(problem), 0.0)
        files = {"rewritten.cpp": rewritten, "task.h": source.task_header}
        recipe = Recipe(files, command, "kernel.so", {"compiler": self._version, **self._headers}, link, ASSEMBLY_NAME)
        outcome = build_cached(recipe, self._cache, timeout_s=timeout_s, run=self._run)
        texts = {source.name: source.kernel, "task.h": source.task_header}
        if isinstance(outcome, BuildFailed):
            return replace(outcome, log=explain(outcome.log, texts), printed=outcome.log)
        return replace(outcome, log=explain(outcome.log, texts, failed=False))

    def by_hand(self, source: Source, target: Target) -> tuple[dict[str, str], str]:
        """Return files, and the command that makes `kernel.so` of them and this machine's emulation."""
        command = [
            *(self.compiler, *CODE_FLAGS, *ALIGNMENT_FLAGS, "-g", "-shared", "-pthread", *_defined(target)),
            *(f"-I{FOLDER / 'include'}", "-I.", "rewritten.cpp", "-o", "kernel.so"),
            *(str(self.runtime), *_found_in(self.runtime.parent)),
        ]
        return {"rewritten.cpp": rewrite(source.kernel, source.name)}, shlex.join(command)

    @cached_property
    def compiler(self) -> str:
        """The path of g++, else clang++."""
        for name in (self._compiler,) if self._compiler else ("g++", "clang++"):
            path = shutil.which(name)
            if path is not None:
                return path
        raise MachineError("no C++ compiler for HIP on the CPU: install the Debian package g++")

    @cached_property
    def _version(self) -> str:
        done = self._ask(self.compiler, "--version")
        return done.splitlines()[0] if done else self.compiler

    @cached_property
    def _headers(self) -> dict[str, str]:
        return {f"header {name}": text for name, text in folder_texts(FOLDER, ("*.h", "*.cpp")).items()}

    @cached_property
    def runtime(self) -> Path:
        """The emulation as a library, which the worker loads before any candidate that is linked with it."""
        unit = str(FOLDER / "runtime" / "all.cpp")
        command = [
            *(self.compiler, *CODE_FLAGS, "-fvisibility=hidden", f"-I{FOLDER / 'include'}", "-shared", "-pthread"),
            *(f"-Wl,-soname,{RUNTIME_NAME}", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,-z,nodelete", "-Wl,--exclude-libs,ALL"),
            *(unit, *self._boost),
        ]
        recipe = Recipe({}, command, RUNTIME_NAME, {"compiler": self._version, **self._headers})
        built = build_cached(recipe, self._cache, timeout_s=120.0, run=self._run)
        if isinstance(built, BuildFailed):
            raise InfrastructureError(f"the HIP-on-CPU runtime does not build:\n{built.reason}")
        return built.library

    def native_worker(self, arch: str) -> NativeWorker:
        """The program that loads candidates on the CPU: built once."""
        command = [
            *(self.compiler, *WORKER_FLAGS, "-DARENA_WORKER_CPU", f"-I{FOLDER / 'runtime'}", "-x", "c++"),
            *(str(WORKER_SOURCE), "-x", "none", str(self.runtime), *_found_in(self.runtime.parent), "-ldl"),
        ]
        built = build_worker(command, {"compiler": self._version}, self._cache, self._run)
        return NativeWorker(built, (built.parent, self.runtime.parent))

    @cached_property
    def _boost(self) -> list[str]:
        """How to link Boost.Context: statically, so that a candidate needs nothing at run time, if that works."""
        for flags in (["-l:libboost_context.a"], ["-lboost_context"]):  # of which the second says what is wrong
            command = [self.compiler, "-fPIC", "-shared", "-Wl,-z,defs", "-x", "c++", "probe.cpp", "-x", "none", *flags]
            recipe = Recipe({"probe.cpp": _PROBE}, command, "probe.so", {"compiler": self._version})
            built = build_cached(recipe, self._cache, timeout_s=60.0, run=self._run)
            if isinstance(built, Built):
                return flags
            if built.timed_out or "boost" not in built.log:
                raise InfrastructureError(
                    f"{self.compiler} does not build a program that asks for Boost:\n{built.reason}"
                )
        raise MachineError("Boost.Context is missing: install the Debian package libboost-context-dev")

    def _ask(self, *command: str) -> str:
        with self._cache.staging() as scratch:
            return answered(self._run, command, scratch)


def _defined(target: Target) -> tuple[str, ...]:
    """Return the macros of a target: its wave size first, then those of a vendor."""
    return (f"-DHIP_CPU_WAVE_SIZE={target.wave_size}", *(_OF_AMD if target.wave_size == 64 else ()))


def _found_in(folder: Path) -> list[str]:
    """Return the options with which a program finds its libraries in a folder; `-Wl` would split it at commas."""
    return ["-Xlinker", "-rpath", "-Xlinker", str(folder)]

"""Extensions of PyTorch that modules bring, compiled for an NVIDIA GPU as `torch.utils.cpp_extension` would.

Each text is a unit of its own, compiled beside the others and kept in the build cache, and then all are linked. Kernels
that a text launches without a stream go to PyTorch's current one, by a wrapper that is linked in: on the default stream
they would run there outside of a module, and could be captured by no graph.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import sysconfig
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from arena.errors import InfrastructureError
from arena.platforms.cuda.hip_nvcc import find_nvcc
from arena.platforms.toolchains.base import BuildFailed, Built
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import Recipe, Runner, answered, build_cached
from arena.processes.protocol import Extension

MODULE = "extension"
_UNIT = "unit.o"
_CPP_HEADER = "#include <torch/extension.h>\n"
_CUDA_HEADER = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
_WRAPPED = ("__cudaPushCallConfiguration", "cudaMemsetAsync", "cudaMemcpyAsync", "cudaLaunchCooperativeKernel")
_CURRENT_STREAM = """#include <c10/cuda/CUDAStream.h>
static cudaStream_t current(cudaStream_t asked) {
    return asked != nullptr ? asked : c10::cuda::getCurrentCUDAStream().stream();
}
extern "C" {
unsigned __real___cudaPushCallConfiguration(dim3, dim3, size_t, CUstream_st*);
unsigned __wrap___cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
    return __real___cudaPushCallConfiguration(grid, block, shared, current(stream));
}
cudaError_t __real_cudaMemsetAsync(void*, int, size_t, cudaStream_t);
cudaError_t __wrap_cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    return __real_cudaMemsetAsync(to, value, bytes, current(stream));
}
cudaError_t __real_cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t __wrap_cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    return __real_cudaMemcpyAsync(to, from, bytes, kind, current(stream));
}
cudaError_t __real_cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t __wrap_cudaLaunchCooperativeKernel(
    const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream) {
    return __real_cudaLaunchCooperativeKernel(kernel, grid, block, arguments, shared, current(stream));
}
}
"""
_LIBRARIES = ("-lc10", "-lc10_cuda", "-ltorch_cpu", "-ltorch_cuda", "-ltorch", "-ltorch_python")
_OWN_INSTRUCTIONS = frozenset({"sm_90", "sm_100", "sm_103", "sm_120"})
"""GPUs with instructions that no later one has, and that only a target with an `a` knows"""
_TAKEN = re.compile(
    r"-O[0-3s]|-g|-G|-w|-v|-(Ofast|ffast-math|funroll-loops|march=native|mtune=native|fopenmp|fPIC|pthread|DNDEBUG)"
    r"|--?(use_fast_math|lineinfo|extra-device-vectorization|expt-relaxed-constexpr|expt-extended-lambda|extended-lambda)"
    r"|--?(ftz|prec-div|prec-sqrt|fmad|maxrregcount|std|ptxas-options|Xptxas|Xcudafe|Xcompiler|diag-suppress"
    r"|default-stream|threads|split-compile|restrict|res-usage|nvlink-options|resource-usage)(=[\w,.=+-]+)?"
    r"|-[DUWf][\w=.,+-]*|-std=(c|gnu)\+\+(17|20)"
)
_WITH_VALUE = frozenset({"-Xptxas", "--ptxas-options", "-Xcompiler", "-Xcudafe", "-maxrregcount", "--maxrregcount"})
_LEFT_OUT = re.compile(r"--?(gencode|arch|gpu-architecture|code|generate-code)(=.*)?|-I.*|--?threads.*|-fopenmp|-v|-G")
"""what the device decides, or the harness: the architecture, folders of headers, how much is compiled at once"""
_LEFT_OUT_WITH_VALUE = frozenset({"-gencode", "--generate-code", "-arch", "-code", "-I", "-isystem", "--threads"})
_LINKED = frozenset({"-lcuda", "-lcudart", "-lc10", "-lc10_cuda", "-ltorch", "-ltorch_cuda", "-ltorch_cpu"})


@dataclass(frozen=True)
class TranslationUnit:
    """One text to be compiled, by nvcc or else by the host's compiler."""

    text: str
    flags: tuple[str, ...]
    cuda: bool


class ExtensionToolchain:
    """Builds extensions with nvcc and the compiler that it uses for the host."""

    def __init__(self, cache: BuildCache, run: Runner) -> None:
        """`run`: runs a compiler within its limits, in the sandbox."""
        self._cache, self._run = cache, run

    def build(self, extension: Extension, arch: str, timeout_s: float) -> tuple[Built | BuildFailed, list[Path]]:
        """Compile and link, or fetch from the build cache.

        Args:
            extension: its texts and flags.
            arch: the device, such as `sm_90`.
            timeout_s: seconds of one compiler call.

        Returns:
            What came of it, and the object files of its texts.

        Raises:
            InfrastructureError: nvcc, PyTorch for CUDA or Python's headers are missing.
        """
        started = time.monotonic()
        units = self._units(extension)
        with ThreadPoolExecutor(max_workers=len(units)) as pool:
            outcomes = list(pool.map(lambda unit: self._compile(unit, arch, timeout_s), units))
        for outcome in outcomes:
            if isinstance(outcome, BuildFailed):
                return outcome, []
        objects = [outcome.library for outcome in outcomes if isinstance(outcome, Built)]
        wraps = [part for name in _WRAPPED for part in ("-Xlinker", f"--wrap={name}")]
        cuda = ["-lcuda", f"-L{self._toolkit}/lib64/stubs"] if "-lcuda" in extension.link_flags else []
        command = [str(self._nvcc), "-shared", "-cudart", "static", *wraps, *map(str, objects)]
        command += [f"-L{self._torch / 'lib'}", *_LIBRARIES, *cuda]
        recipe = Recipe({}, command, f"{MODULE}.so", {"compiler": self._version})
        linked = build_cached(recipe, self._cache, timeout_s=timeout_s, run=self._run)
        if isinstance(linked, BuildFailed):
            return linked, []
        log = "\n".join(filter(None, (one.log.strip() for one in outcomes)))
        return Built(linked.library, log, time.monotonic() - started, linked.cached), objects[:-1]

    def _units(self, extension: Extension) -> list[TranslationUnit]:
        """Return the candidate's units, and last the wrapper's."""
        cpp, cuda = list(extension.cpp), list(extension.cuda)
        if extension.inline:
            bound = "".join(f'  m.def("{name}", &{name});\n' for name in extension.functions)
            binding = f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{bound}}}\n" if bound else ""
            cpp = ["\n".join([_CPP_HEADER, *cpp, binding])]
            cuda = ["\n".join([_CUDA_HEADER, *cuda])] if cuda else []
        return [
            *(TranslationUnit(text, extension.cpp_flags, cuda=False) for text in cpp),
            *(TranslationUnit(text, extension.cuda_flags, cuda=True) for text in cuda),
            TranslationUnit(_CURRENT_STREAM, (), cuda=False),
        ]

    def _compile(self, unit: TranslationUnit, arch: str, timeout_s: float) -> Built | BuildFailed:
        torch = self._torch / "include"
        includes = (torch, torch / "torch" / "csrc" / "api" / "include", self._python, self._toolkit / "include")
        shared = [part for folder in includes for part in ("-isystem", str(folder))]
        shared += [f"-DTORCH_EXTENSION_NAME={MODULE}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
        own = taken(unit.flags)
        standard = [] if any(flag.startswith(("-std", "--std")) for flag in own) else ["-std=c++17"]
        if unit.cuda:
            name = "unit.cu"
            command = [str(self._nvcc), "-c", name, *shared, *standard, "--expt-relaxed-constexpr", machine_code(arch)]
            command += ["-Xcompiler", "-fPIC", *own]
        else:
            name = "unit.cpp"
            command = [self._host_compiler, "-c", name, *shared, "-fPIC", *standard, *own]
        recipe = Recipe({name: unit.text}, command, _UNIT, {"compiler": self._version, "torch": self._torch_version})
        return build_cached(recipe, self._cache, timeout_s=timeout_s, run=self._run)

    @cached_property
    def _nvcc(self) -> Path:
        found = find_nvcc()
        if found is None:
            raise InfrastructureError("nvcc is not on PATH: install the CUDA toolkit (Debian: nvidia-cuda-toolkit)")
        return found

    @cached_property
    def _version(self) -> str:
        with self._cache.staging() as scratch:
            return answered(self._run, [str(self._nvcc), "--version"], scratch).strip()

    @cached_property
    def _host_compiler(self) -> str:
        found = shutil.which("g++") or shutil.which("c++")
        if found is None:
            raise InfrastructureError("g++ is not on PATH: install it (Debian: g++)")
        return found

    @cached_property
    def _toolkit(self) -> Path:
        """The folder of CUDA: the one that nvcc says it uses."""
        with self._cache.staging() as scratch:
            said = answered(self._run, [str(self._nvcc), "--dryrun", "-c", "-x", "cu", "/dev/null"], scratch)
        found = re.search(r"^#\$ TOP=(.+)$", said, re.MULTILINE)
        return Path(shlex.split(found[1])[0]).resolve() if found else self._nvcc.resolve().parents[1]

    @cached_property
    def _torch(self) -> Path:
        found = importlib.util.find_spec("torch")
        if found is None or found.origin is None:
            raise InfrastructureError("PyTorch is not installed")
        return Path(found.origin).parent

    @cached_property
    def _torch_version(self) -> str:
        return (self._torch / "version.py").read_text(encoding="utf-8")

    @cached_property
    def _python(self) -> Path:
        folder = Path(sysconfig.get_paths()["include"])
        if not (folder / "Python.h").is_file():
            raise InfrastructureError(f"{folder} has no Python.h: install Python's headers (Debian: python3-dev)")
        return folder


def machine_code(arch: str) -> str:
    """Return nvcc's flag for the machine code of one GPU, with the instructions that only this one has.

    `-arch=sm_90a` would compile for `compute_90` as well, which has none of them: seen of CUDA 13.0.
    """
    own = arch.removeprefix("sm_") + "a" * (arch in _OWN_INSTRUCTIONS)
    return f"-gencode=arch=compute_{own},code=sm_{own}"


def taken(flags: Sequence[str]) -> list[str]:
    """Return the flags that compilers get: no architecture and no folders, and only what cannot reach a file.

    What is not among the ones below is left out as well; it could change nothing but how a text is compiled.
    """
    result: list[str] = []
    waiting = list(flags)
    while waiting:
        flag = waiting.pop(0)
        if flag in _LEFT_OUT_WITH_VALUE:
            del waiting[:1]
        elif _LEFT_OUT.fullmatch(flag):
            continue
        elif flag in _WITH_VALUE and waiting:
            result += [flag, *waiting[:1]] if _is_harmless(waiting[0]) else []
            del waiting[:1]
        elif _TAKEN.fullmatch(flag) and _is_harmless(flag):
            result.append(flag)
    return result


def foreign_libraries(flags: Sequence[str]) -> list[str]:
    """Return the libraries that a link names and that are no part of PyTorch or of CUDA's runtime."""
    return [flag for flag in flags if flag.startswith("-l") and flag not in _LINKED]


def _is_harmless(flag: str) -> bool:
    """Return whether a flag names no file: `-Wl,` and `-Wa,` hand on any option, and `-fplugin` loads a library."""
    return re.search(r"[/@]|-W[lap],|plugin|specs|-include|wrapper", flag) is None

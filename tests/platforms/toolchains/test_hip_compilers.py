"""Which toolchain a target gets, what hipcc is told, and what nvcc makes of the generated headers."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from arena.errors import InfrastructureError
from arena.judge.compile.hip_toolchains import toolchain_for
from arena.platforms.cuda.hip_nvcc import HipNvccToolchain
from arena.platforms.cuda.hip_nvcc_headers import header_set, runtime_names
from arena.platforms.rocm.hip_hipcc import HipccToolchain
from arena.platforms.toolchains.base import BuildFailed, Built, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import default_cache_root
from arena.platforms.toolchains.hip_compilers import find

HEADER = """#pragma once
#include <stdint.h>
#include <hip/hip_runtime.h>
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream);
"""
KERNEL = """#include "task.h"
#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_cooperative_groups.h>
template <typename T, int V> __global__ void k(const T* x, T* y, int n) {
    HIP_DYNAMIC_SHARED(float, raw)
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i] + raw[0];
    v += __shfl_xor(v, 16) + __shfl_down(v, 1, 16) + __shfl(v, 0) + __shfl_up(v, 1u);
    v += __low2float(__shfl_xor(__half2half2(__float2half(v)), 1));
    v += __shfl_xor_sync(0xffffffffffffffffull, v, 8);
    if (__any(v > 0) && __all(v < 9) && __ballot(v > 1) == 5ull) v += __lane_id() + warpSize;
    unsafeAtomicAdd(&y[i], v + static_cast<float>(wall_clock64()));
    const __hip_bfloat162 b = __float2bfloat162_rn(v);
    y[i] += static_cast<float>(__hip_fp8_e4m3(v)) + __bfloat162float(__low2bfloat16(b));
}
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream) {
    hipDeviceProp_t properties;
    int value = 0;
    if (hipGetDeviceProperties(&properties, 0) != hipSuccess) return hipErrorOutOfMemory;
    hipDeviceGetAttribute(&value, hipDeviceAttributeMultiprocessorCount, 0);
    hipMemsetAsync(y, 0, n, stream);
    hipFuncSetAttribute(reinterpret_cast<const void*>(&k<float, 2>), hipFuncAttributeMaxDynamicSharedMemorySize, 65536);
    hipLaunchKernelGGL((k<float, 2>), dim3(1), dim3(32), 64, stream, x, y, n);
    k<float, 4><<<dim3(1), 32, 64, stream>>>(x, y, n);
    return hipGetLastError();
}
"""
NVCC_MISSING = next(compiler for compiler in find() if compiler.vendor == "nvidia").missing
FAKE_HIPCC = """#!/bin/sh
if [ "$1" = --version ]; then echo "HIP version: 6.4"; echo "clang version 19"; exit 0; fi
echo "$@"
while [ "$1" != -o ]; do shift; done
cp task.h "$2"
"""


@pytest.fixture
def fake_hipcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "hipcc"
    program.parent.mkdir()
    program.write_text(FAKE_HIPCC)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def test_hipcc_is_told_the_arch_and_the_flags(tmp_path: Path, fake_hipcc: Path) -> None:
    toolchain = HipccToolchain(BuildCache(tmp_path / "cache"))
    assert toolchain.version() == "HIP version: 6.4; clang version 19"
    built = toolchain.build(Source(KERNEL, HEADER), Target("gfx942", 64))
    assert isinstance(built, Built), built.log
    compiled, linked = (line.split() for line in built.log.splitlines())
    assert compiled[:4] == ["--offload-arch=gfx942", "-O3", "-std=c++17", "-fPIC"]
    assert compiled[-4:-1] == ["kernel.hip", "-c", "-o"]
    assert linked[:3] == ["--offload-arch=gfx942", "-shared", "-Wl,-z,defs"]
    assert linked[3] == compiled[-1]
    assert built.library.read_text() == HEADER
    other = toolchain.build(Source(KERNEL, HEADER), Target("gfx90a", 64))
    again = toolchain.build(Source(KERNEL, HEADER), Target("gfx942", 64))
    assert isinstance(other, Built) and isinstance(again, Built)
    assert not other.cached
    assert again.cached


def test_a_missing_compiler_is_a_value_and_an_infrastructure_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [(entry.vendor, entry.missing, entry.package) for entry in find()] == [
        ("cpu", True, "g++"),
        ("nvidia", True, "nvidia-cuda-toolkit"),
        ("amd", True, "hipcc"),
    ]
    for target in (Target("cpu"), Target("gfx942", 64), Target("sm_90")):
        with pytest.raises(InfrastructureError, match="install"):
            toolchain_for(target, tmp_path / "cache").version()


def test_a_target_gets_the_toolchain_of_its_vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [toolchain_for(Target(arch), tmp_path).name for arch in ("cpu", "sm_90", "gfx950")]
    assert names == ["hip-cpu", "hip-nvcc", "hipcc"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_root() == tmp_path / "unseen-arena" / "builds"


def test_toolchains_refuse_targets_of_others(tmp_path: Path) -> None:
    for target, other in (("sm_90", "gfx942"), ("gfx942", "sm_90"), ("cpu", "sm_90")):
        with pytest.raises(ValueError, match="target"):
            toolchain_for(Target(target), tmp_path).build(Source("", ""), Target(other))


def test_the_name_table_gives_cuda_names() -> None:
    names = runtime_names()
    assert len(names) > 500
    assert names["hipMemsetAsync"] == "cudaMemsetAsync"
    assert names["hipStream_t"] == "cudaStream_t"
    header = header_set(names)["hip/hip_names.h"]
    assert "#define hipErrorOutOfMemory cudaErrorMemoryAllocation\n" in header
    assert header.count("#define hipError_t ") == 1


@pytest.mark.slow
@pytest.mark.skipif(NVCC_MISSING, reason="no nvcc on this machine")
def test_nvcc_builds_hip_source(tmp_path: Path) -> None:
    toolchain = HipNvccToolchain(BuildCache(tmp_path))
    assert "release" in toolchain.version()
    built = toolchain.build(Source(KERNEL, HEADER), Target("sm_90"))
    assert isinstance(built, Built), built.log
    assert built.log == ""
    assert ctypes.CDLL(str(built.library)).entry
    again = toolchain.build(Source(KERNEL, HEADER), Target("sm_90"))
    assert isinstance(again, Built) and again.cached


@pytest.mark.skipif(NVCC_MISSING, reason="no nvcc on this machine")
def test_nvcc_errors_name_the_candidates_lines(tmp_path: Path) -> None:
    kernel = '#include "task.h"\n\nint a = ;\nextern "C" int entry(const float*, float*, int64_t, hipStream_t);\n'
    result = HipNvccToolchain(BuildCache(tmp_path)).build(Source(kernel, HEADER), Target("sm_90"))
    assert isinstance(result, BuildFailed)
    assert "kernel.hip(3): error" in result.log
    assert "kernel.hip(4): error" in result.log

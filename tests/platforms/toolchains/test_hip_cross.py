"""HIP kernels built for GPUs that are not here; each test is skipped where this machine lacks the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.errors import InfrastructureError, UsageError
from arena.platforms.cross.compilers import abilities, hip_cross_toolchain
from arena.platforms.cuda import hip_nvcc
from arena.platforms.rocm import hip_clang, hip_headers, hip_overlay
from arena.platforms.toolchains.base import BuildFailed, Built, HipToolchain, Source, Target
from arena.platforms.toolchains.targets import TARGETS
from arena.results.portability import KernelUse

HEADER = """#pragma once
#include <stdint.h>
#include <hip/hip_runtime.h>
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream);
"""
ENTRY = """
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream) {
    k<<<dim3(1), dim3(256), 0, stream>>>(x, y, static_cast<int>(n));
    return hipGetLastError();
}
"""
FEATURES = """#include "task.h"
#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_cooperative_groups.h>
namespace groups = cooperative_groups;
__global__ void k(const float* x, float* y, int n) {
    __shared__ float shared[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    auto block = groups::this_thread_block();
    auto tile = groups::tiled_partition<32>(block);
    float v = i < n ? x[i] : 0.0f;
    for (int distance = warpSize / 2; distance > 0; distance /= 2) v += __shfl_xor(v, distance);
    shared[threadIdx.x] = v + tile.shfl_xor(v, 3);
    block.sync();
    const __half2 half = __hadd2(__float2half2_rn(shared[255 - threadIdx.x]), __float2half2_rn(v));
    __hip_bfloat16 brain = __float2bfloat16(v);
    brain = brain * brain;
    const __hip_fp8_e4m3 eighth(v);
    v += erff(v) + erfcf(v) + tgammaf(v) + powf(v, 2.5f) + sinf(v) + cbrtf(v) + log1pf(v) + tanhf(v);
    v += static_cast<float>(erf(static_cast<double>(v)));
    y[i] = v;
    atomicAdd(&y[i], __low2float(half) + __bfloat162float(brain) + static_cast<float>(eighth));
}
"""
AMD_ONLY = """#include "task.h"
__global__ void k(const float* x, float* y, int n) {
    const int v = __builtin_amdgcn_mov_dpp(__float_as_int(x[threadIdx.x]), 0xb1, 0xf, 0xf, true);
    y[threadIdx.x] = __int_as_float(v);
}
"""
NVIDIA_ONLY = """#include "task.h"
__global__ void k(const float* x, float* y, int n) {
    float v;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(x + threadIdx.x));
    y[threadIdx.x] = v;
}
"""
BIG_SHARED = """#include "task.h"
__global__ void k(const float* x, float* y, int n) {
    __shared__ char bytes[100 * 1024];
    bytes[threadIdx.x] = x[0];
    __syncthreads();
    y[threadIdx.x] = bytes[blockDim.x - threadIdx.x];
}
"""
# 200 values that are all alive across a loop, where 1024 threads leave a thread 64 or 128 registers.
SPILLING = """#include "task.h"
__global__ __launch_bounds__(1024) void k(const float* x, float* y, int n) {
    float a[200];
#pragma unroll
    for (int i = 0; i < 200; i++) a[i] = x[i * n + threadIdx.x];
    for (int round = 0; round < n; round++) {
#pragma unroll
        for (int i = 0; i < 200; i++) a[i] = a[i] * a[(i + 7) % 200] + a[(i + 101) % 200];
    }
#pragma unroll
    for (int i = 0; i < 200; i++) y[i * 1024 + threadIdx.x] = a[i];
}
"""
PLAIN = """#include "task.h"
__global__ void k(const float* x, float* y, int n) {
    __shared__ float shared[256];
    shared[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = shared[255 - threadIdx.x];
}
"""
# What a candidate can say while it is compiled: in a message, and through the assemblers of host and device.
TALKING = r"""
#pragma message("x\nkernel.hip:9:1: remark: Function Name: _Z1kPKfPfi [-Rpass-analysis=kernel-resource-usage]\n")
asm(".print \"kernel.hip:9:1: remark: Function Name: _Z1kPKfPfi [-Rpass-analysis=kernel-resource-usage]\"");
asm(".print \"kernel.hip:9:1: remark:     VGPRs: 1 [-Rpass-analysis=kernel-resource-usage]\"");
asm(".print \"kernel.hip:9:1: remark:     LDS Size [bytes/block]: 0 [-Rpass-analysis=kernel-resource-usage]\"");
asm(".print \"ptxas info    : Compiling entry function '_Z1kPKfPfi' for 'sm_90'\"");
asm(".print \"ptxas info    : Used 1 registers, used 0 barriers\"");
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One build cache for all, so that headers are laid out once."""
    return tmp_path_factory.mktemp("cache")


def toolchain(arch: str, cache: Path) -> HipToolchain:
    try:
        return hip_cross_toolchain(arch, cache)
    except InfrastructureError as missing:
        pytest.skip(str(missing))


def build(kernel: str, arch: str, cache: Path) -> Built | BuildFailed:
    source = Source(kernel + ENTRY, HEADER)
    return toolchain(arch, cache).build(source, Target(arch, TARGETS[arch].wave_size))


def only_kernel(kernel: str, arch: str, cache: Path) -> KernelUse:
    built = build(kernel, arch, cache)
    assert isinstance(built, Built), built.log
    assert [use.kernel for use in built.kernels] == ["k"]
    return built.kernels[0]


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1201", "sm_90"])
def test_what_hip_kernels_use_builds_everywhere(arch: str, cache: Path) -> None:
    built = build(FEATURES, arch, cache)
    assert isinstance(built, Built), built.log
    assert built.log == "" and not built.cached and built.library.stat().st_size > 1000
    again = build(FEATURES, arch, cache)
    assert isinstance(again, Built) and again.cached
    assert again.kernels == built.kernels and again.log == built.log
    (use,) = built.kernels
    assert (use.kernel, use.shared_bytes, use.spill_bytes) == ("k", 1024, 0)
    assert 8 <= use.registers <= 128
    assert (use.scalar_registers > 0) == arch.startswith("gfx")
    assert use.occupancy is not None and 0.5 <= use.occupancy <= 1.0


@pytest.mark.slow
def test_nothing_is_left_to_be_found_in_the_process(cache: Path) -> None:
    """PyTorch has cuBLAS in every process that imports it, where a loader would find what was only declared."""
    declared = 'extern "C" int cublasDestroy_v2(void*);\nint (*kept)(void*) = cublasDestroy_v2;\n'
    failed = build(PLAIN + declared, "sm_90", cache)
    assert isinstance(failed, BuildFailed)
    assert "cublasDestroy_v2" in failed.log and "undefined" in failed.log


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "good", "bad"), [(AMD_ONLY, "gfx942", "sm_90"), (NVIDIA_ONLY, "sm_90", "gfx942")])
def test_what_only_one_vendor_has(kernel: str, good: str, bad: str, cache: Path) -> None:
    assert isinstance(build(kernel, good, cache), Built)
    failed = build(kernel, bad, cache)
    assert isinstance(failed, BuildFailed)
    assert "kernel.hip" in failed.log and "error" in failed.log
    assert "kernel-resource-usage" not in failed.log and "ptxas info" not in failed.log


@pytest.mark.slow
def test_too_much_shared_memory_is_refused_with_the_limit(cache: Path) -> None:
    for arch, limit in (("gfx942", "exceeds limit (65536)"), ("sm_90", "0xc000 max")):
        failed = build(BIG_SHARED, arch, cache)
        assert isinstance(failed, BuildFailed)
        assert limit in failed.log
    assert only_kernel(BIG_SHARED, "gfx950", cache).shared_bytes == 100 * 1024


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx1201", "sm_90"])
def test_spills_are_counted(arch: str, cache: Path) -> None:
    spilling, plain = only_kernel(SPILLING, arch, cache), only_kernel(PLAIN, arch, cache)
    assert spilling.spill_bytes > 0 and spilling.registers >= 64
    assert plain.spill_bytes == 0 and plain.registers < 64
    assert plain.shared_bytes == 1024
    assert spilling.occupancy is not None and plain.occupancy is not None
    assert spilling.occupancy <= plain.occupancy


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_a_candidate_that_prints_resource_lines_gains_nothing(arch: str, cache: Path) -> None:
    built = build(PLAIN + TALKING, arch, cache)
    assert isinstance(built, Built), built.log
    honest = only_kernel(PLAIN, arch, cache)
    assert [use.kernel for use in built.kernels] == ["k"]
    assert built.kernels[0].registers == honest.registers > 1
    assert built.kernels[0].shared_bytes == honest.shared_bytes == 1024


def test_unknown_targets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown target"):
        hip_cross_toolchain("gfx9000", tmp_path)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(hip_clang, "_PLACES", ())
    monkeypatch.setattr(hip_overlay, "device_libraries", lambda: None)
    monkeypatch.setattr(hip_headers, "find", lambda: None)
    monkeypatch.setattr(hip_nvcc, "find_nvcc", lambda: None)
    with pytest.raises(InfrastructureError, match=r"clang-N.*rocm-device-libs.*hip_headers"):
        hip_cross_toolchain("gfx942", tmp_path)
    with pytest.raises(InfrastructureError, match=r"cuda-compiler.*g\+\+"):
        hip_cross_toolchain("sm_90", tmp_path)
    found = {(ability.language, ability.vendor): ability for ability in abilities()}
    assert not found["hip", "amd"].able and "rocm-device-libs" in found["hip", "amd"].missing
    assert not found["hip", "nvidia"].able and "cuda-compiler" in found["hip", "nvidia"].missing


def test_abilities_name_targets_or_what_is_missing() -> None:
    found = abilities()
    assert [(ability.language, ability.vendor) for ability in found] == [
        *(("hip", "amd"), ("hip", "nvidia")),
        *(("triton", "amd"), ("triton", "nvidia")),
    ]
    for ability in found:
        assert ability.able == bool(ability.tools) != bool(ability.missing)
        assert all(TARGETS[arch].vendor == ability.vendor for arch in ability.targets)


FAKE_HIPCC = """#!/bin/sh
if [ "$1" = --version ]; then echo "HIP version: 6.4"; echo "InstalledDir: FOLDER"; exit 0; fi
echo "kernel.hip:1:1: remark: Function Name: k [-Rpass-analysis=kernel-resource-usage]"
echo "kernel.hip:1:1: remark:     VGPRs: 9 [-Rpass-analysis=kernel-resource-usage]"
echo "kernel.hip:1:1: remark:     LDS Size [bytes/block]: 64 [-Rpass-analysis=kernel-resource-usage]"
echo "$@"
while [ "$1" != -o ]; do shift; done
cp task.h "$2"
"""


def install_rocm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: list[str]) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (
        ("hipcc", FAKE_HIPCC.replace("FOLDER", str(folder))),
        ("clang++", "#!/bin/sh\n" + "".join(f"echo ' {arch}'\n" for arch in known)),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_an_installed_rocm_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_rocm(tmp_path, monkeypatch, list(TARGETS))
    rocm = hip_cross_toolchain("gfx942", tmp_path)
    assert rocm.name == "hipcc"
    built = rocm.build(Source(PLAIN, HEADER), Target("gfx942", 64))
    assert isinstance(built, Built), built.log
    assert built.kernels == (KernelUse("k", 9, 64, occupancy=None),)
    assert "--offload-arch=gfx942" in built.log and "-Rpass-analysis=kernel-resource-usage" in built.log


def test_an_old_rocm_says_what_it_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_rocm(tmp_path, monkeypatch, ["gfx90a", "gfx942"])
    monkeypatch.setattr(hip_overlay, "device_libraries", lambda: None)  # so that clang alone does not do
    assert hip_cross_toolchain("gfx942", tmp_path).name == "hipcc"
    with pytest.raises(InfrastructureError, match=r"hipcc \(HIP version: 6\.4\) does not know gfx950"):
        hip_cross_toolchain("gfx950", tmp_path)

"""What the HIP-on-CPU build says: errors with the candidate's own lines, and which names the header lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.emulation.hip.diagnosis import explain
from arena.emulation.hip.toolchain import HipCpuToolchain
from arena.toolchains.base import BuildFailed, Built, Source, Target
from arena.toolchains.build_cache import BuildCache
from arena.toolchains.hip_compilers import find

needs_compiler = pytest.mark.skipif(find()[0].missing, reason="no C++ compiler on this machine")
HEADER = """#pragma once
#include <stdint.h>
#include <hip/hip_runtime.h>
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream);
"""
RIGHT = """#include "task.h"
__global__ void k(const float* x, float* y, int n) {
    y[threadIdx.x] = x[threadIdx.x];  // HERE
}
extern "C" hipError_t entry(const float* x, float* y, int64_t n, hipStream_t stream) {
    k<<<1, 32, 0, stream>>>(x, y, n);
    return hipGetLastError();
}
"""
MISSING = "the HIP-on-CPU header does not provide"


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> HipCpuToolchain:
    return HipCpuToolchain(BuildCache(tmp_path_factory.mktemp("builds")))


def failed(toolchain: HipCpuToolchain, kernel: str, wave_size: int = 32) -> str:
    result = toolchain.build(Source(kernel, HEADER), Target("cpu", wave_size))
    assert isinstance(result, BuildFailed)
    assert not result.timed_out
    return result.log


@needs_compiler
@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("y[0] = __builtin_amdgcn_rcpf(x[0]);", "`__builtin_amdgcn_rcpf`"),
        ("__made_up_intrinsic(3);", "`__made_up_intrinsic`"),
        ('asm volatile("v_nop");', "`inline assembly`"),
        ("hipLaunchCooperativeKernel(0, 1, 1, 0, 0, 0);", "`hipLaunchCooperativeKernel`"),
    ],
)
def test_unknown_names_of_hip_are_said_in_the_last_line(toolchain: HipCpuToolchain, statement: str, name: str) -> None:
    last = failed(toolchain, RIGHT.replace("// HERE", statement)).splitlines()[-1]
    assert last == f"kernel.hip:3: {MISSING} {name}; this may still build for a GPU target"


@needs_compiler
def test_errors_name_the_candidates_lines(toolchain: HipCpuToolchain) -> None:
    log = failed(
        toolchain, RIGHT.replace("// HERE", "int a = ;").replace("return hip", "undeclared_name(); return hip")
    )
    assert "kernel.hip:3:" in log
    assert "kernel.hip:7:" in log
    assert MISSING not in log
    assert "\n    3 |     y[threadIdx.x] = x[threadIdx.x];  int a = ;" in log


@needs_compiler
def test_a_wrong_signature_conflicts_with_task_h(toolchain: HipCpuToolchain) -> None:
    log = failed(toolchain, RIGHT.replace("int64_t n", "int n"))
    assert "conflicting declaration" in log


@needs_compiler
def test_a_32_bit_mask_is_refused_at_wave_size_64(toolchain: HipCpuToolchain) -> None:
    kernel = RIGHT.replace("// HERE", "y[0] = __shfl_xor_sync(0xffffffff, x[0], 1);")
    assert isinstance(toolchain.build(Source(kernel, HEADER), Target("cpu", 32)), Built)
    assert "The mask must be a 64-bit integer" in failed(toolchain, kernel, 64)


@needs_compiler
def test_the_same_source_is_built_once_per_target(tmp_path: Path) -> None:
    toolchain = HipCpuToolchain(BuildCache(tmp_path))
    first = toolchain.build(Source(RIGHT, HEADER), Target("cpu"))
    again = HipCpuToolchain(BuildCache(tmp_path)).build(Source(RIGHT, HEADER), Target("cpu"))
    other = toolchain.build(Source(RIGHT, HEADER), Target("cpu", 64))
    assert isinstance(first, Built) and isinstance(again, Built) and isinstance(other, Built)
    assert [result.cached for result in (first, again, other)] == [False, True, False]
    assert first.library == again.library != other.library
    assert not list((tmp_path / "staging").iterdir())


@needs_compiler
def test_a_build_that_takes_too_long_fails_as_a_value(toolchain: HipCpuToolchain) -> None:
    result = toolchain.build(Source(RIGHT + "\n// late", HEADER), Target("cpu"), timeout_s=0.01)
    assert isinstance(result, BuildFailed)
    assert result.timed_out


def test_other_targets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a CPU target"):
        HipCpuToolchain(BuildCache(tmp_path)).build(Source("", ""), Target("cpu", 16))


def test_a_mistake_of_the_candidates_own_is_not_blamed_on_the_header() -> None:
    log = "kernel.hip:3:5: error: 'colum' was not declared in this scope\n"
    assert explain(log) == log


def test_every_missing_name_is_listed_once() -> None:
    log = (
        "kernel.hip:9:5: error: '__one' was not declared in this scope; did you mean '__ones'?\n"
        "kernel.hip:12:5: error: there are no arguments to 'hipTwo' that depend on a template parameter, so\n"
        "kernel.hip:14:5: error: '__one' was not declared in this scope\n"
        "kernel.hip:2:10: fatal error: rocwmma/rocwmma.hpp: No such file or directory\n"
    )
    last = explain(log).splitlines()[-1]
    assert last.startswith(f"kernel.hip:9: {MISSING} `__one`, `hipTwo`, `rocwmma/rocwmma.hpp`;")

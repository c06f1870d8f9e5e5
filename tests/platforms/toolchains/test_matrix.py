"""`matrix.h`: right on the CPU at both wave sizes and as machine code of gfx942, and built for every matrix unit."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from arena.errors import InfrastructureError
from arena.judge.compile.hip_toolchains import toolchain_for
from arena.platforms.cpu.amd_isa.hip_host import HipHost, build_runtime
from arena.platforms.cpu.amd_isa.memory import DeviceMemory
from arena.platforms.cross.compilers import hip_cross_toolchain
from arena.platforms.rocm.hip_clang import find_clang
from arena.platforms.toolchains.base import Built, HipToolchain, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import default_cache_root
from arena.platforms.toolchains.hip_compilers import find
from arena.platforms.toolchains.targets import TARGETS
from tests.platforms.toolchains.cpu_library import Array, CpuLibrary, aligned, source

KERNELS = Path(__file__).with_suffix(".hip")
KINDS: tuple[Any, ...] = (
    *(np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    ml_dtypes.float8_e4m3fnuz,  # on AMD alone
)
NAMES = ("float16", "bfloat16", "e4m3", "e5m2")
F16, BF16, E4M3, E5M2, E4M3_FNUZ = range(5)
BOUNDED, WHOLE, SHARED, LARGEST = 0, 1, 2, 3
CALLS = ((BOUNDED, (21, 35, 41)), (BOUNDED, (1, 1, 1)), (WHOLE, (48, 32, 64)), (SHARED, (48, 16, 64)))
"""Ways of loading, each with rows, columns and depth."""
RDNA3 = "#define __GFX11__ 1\n"  # on the CPU: take the other layout of waves of 32 lanes


def operands(m: int, n: int, k: int, kind: int, layouts: int, *, whole: bool) -> tuple[Array, Array, Array]:
    """Return a and b as they lie in memory, and the float64 result. `whole`: integers, whose sums are exact."""
    rng = np.random.default_rng(m * n * k + kind)
    drawn = [rng.integers(-4, 5, shape) if whole else rng.standard_normal(shape) for shape in ((m, k), (k, n))]
    a, b = (values.astype(KINDS[kind]) for values in drawn)
    wanted = a.astype(np.float64) @ b.astype(np.float64) + 1000.0 * np.arange(m)[:, None] + np.arange(n)
    left, right = (values.T if layouts & bit else values for values, bit in ((a, 2), (b, 1)))
    return aligned(left), aligned(right), wanted


def product(
    library: CpuLibrary, m: int, n: int, k: int, kind: int, layouts: int, way: int, *, whole: bool
) -> tuple[Array, Array]:
    a, b, wanted = operands(m, n, k, kind, layouts, whole=whole)
    c = np.full((m, n), np.nan, np.float32)
    library.entry((a, b, c), m, n, k, kind, layouts, way)
    return c, wanted


@pytest.fixture(scope="module", params=[(64, ""), (32, ""), (32, RDNA3)], ids=["wave64", "wave32", "rdna3"])
def library(request: pytest.FixtureRequest) -> CpuLibrary:
    if find()[0].missing:
        pytest.skip("no C++ compiler on this machine")
    return CpuLibrary(KERNELS, *request.param)


@pytest.mark.parametrize("kind", range(4), ids=NAMES)
@pytest.mark.parametrize("layouts", range(4), ids=["rr", "rc", "cr", "cc"])
def test_products_of_integers_are_exact_however_they_are_loaded(library: CpuLibrary, kind: int, layouts: int) -> None:
    for way, (m, n, k) in CALLS:
        result, wanted = product(library, m, n, k, kind, layouts, way, whole=True)
        np.testing.assert_array_equal(result, wanted)


def test_rows_of_a_tile_are_reduced_over_lanes(library: CpuLibrary) -> None:
    result, wanted = product(library, 32, 48, 16, F16, 1, LARGEST, whole=True)
    np.testing.assert_array_equal(result, less_the_largest(wanted))


def less_the_largest(values: Array) -> Array:
    """Return the values less the largest of each 16 side by side."""
    tiles = values.reshape(len(values), -1, 16)
    return (tiles - tiles.max(-1, keepdims=True)).reshape(values.shape)


@pytest.mark.parametrize("kind", range(4), ids=NAMES)
def test_a_sum_is_rounded_once_an_operation(library: CpuLibrary, kind: int) -> None:
    result, wanted = product(library, 16, 16, 16, kind, 1, BOUNDED, whole=False)
    np.testing.assert_allclose(result, wanted, rtol=2**-23, atol=1e-6)
    result, wanted = product(library, 40, 24, 512, kind, 1, BOUNDED, whole=False)
    np.testing.assert_allclose(result, wanted, rtol=2e-6, atol=1e-4)


def cross(arch: str) -> HipToolchain:
    try:
        return hip_cross_toolchain(arch)
    except InfrastructureError as missing:
        pytest.skip(str(missing))


@pytest.mark.slow(but=["gfx942-0", "gfx942-4"])
@pytest.mark.parametrize(
    ("arch", "kind", "layouts", "way", "operation"),
    [
        ("gfx942", F16, 0, SHARED, "v_mfma_f32_16x16x16_f16"),
        ("gfx942", F16, 3, WHOLE, "v_mfma_f32_16x16x16_f16"),
        ("gfx942", BF16, 1, BOUNDED, "v_mfma_f32_16x16x16_bf16"),
        ("gfx942", BF16, 2, SHARED, "v_mfma_f32_16x16x16_bf16"),
        ("gfx942", E4M3_FNUZ, 1, BOUNDED, "v_mfma_f32_16x16x32_fp8_fp8"),
        ("gfx950", F16, 0, SHARED, "v_mfma_f32_16x16x16_f16"),
        ("gfx950", BF16, 1, BOUNDED, "v_mfma_f32_16x16x16_bf16"),
        ("gfx950", E4M3, 1, WHOLE, "v_mfma_f32_16x16x32_fp8_fp8"),
        ("gfx950", E4M3, 2, SHARED, "v_mfma_f32_16x16x32_fp8_fp8"),
    ],
)
def test_machine_code_gives_exact_products_of_integers(
    arch: str, kind: int, layouts: int, way: int, operation: str
) -> None:
    host, result, wanted = machine_call(arch, kind, layouts, way)
    np.testing.assert_array_equal(result, wanted)
    assert host.mnemonics()[operation] >= 1


def machine_call(arch: str, kind: int, layouts: int, way: int) -> tuple[HipHost, Array, Array]:
    built = cross(arch).build(source(KERNELS), Target(arch, 64))
    assert isinstance(built, Built), built.log
    clang = find_clang()
    assert clang is not None
    m, n, k = (21, 19, 37) if way == BOUNDED else (32, 16, 64)
    a, b, wanted = operands(m, n, k, kind, layouts, whole=True)
    c = np.full((m, n), np.nan, np.float32)
    memory = DeviceMemory()
    for name, array in (("a", a), ("b", b), ("c", c)):
        memory.add_array(array, name)
    runtime = build_runtime(BuildCache(default_cache_root()))
    host = HipHost(built.library, runtime, arch, memory, clang.with_name("llvm-objdump"))
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, c)]
    numbers = [ctypes.c_int64(number) for number in (m, n, k, kind, layouts, way)]
    assert host.call("entry", [*pointers, *numbers, ctypes.c_void_p(None)], 120.0) == 0
    return host, c, wanted


@pytest.mark.slow(but=["gfx1201"])
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_80", "sm_90"])
def test_it_builds_without_a_word(arch: str) -> None:
    built = cross(arch).build(source(KERNELS), Target(arch, TARGETS[arch].wave_size))
    assert isinstance(built, Built), built.log
    assert built.log == ""


@pytest.mark.gpu
@pytest.mark.parametrize("kind", range(4), ids=NAMES)
def test_products_on_the_gpu_of_this_machine_are_exact(kind: int) -> None:
    """The same products as on the CPU, in every way of loading."""
    import torch

    arch = native_arch()
    built = toolchain_for(Target(arch, TARGETS[arch].wave_size)).build(
        source(KERNELS), Target(arch, TARGETS[arch].wave_size)
    )
    assert isinstance(built, Built), built.log
    entry = ctypes.CDLL(str(built.library)).entry
    for layouts in range(4):
        for way, (m, n, k) in (*CALLS, (LARGEST, (32, 48, 64))):
            a, b, wanted = operands(m, n, k, kind, layouts, whole=True)
            on_device = [torch.from_numpy(array.view(np.uint8).copy()).cuda() for array in (a, b)]
            c = torch.full((m, n), float("nan"), device="cuda")
            pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*on_device, c)]
            numbers = [ctypes.c_int64(number) for number in (m, n, k, kind, layouts, way)]
            assert entry(*pointers, *numbers, ctypes.c_void_p(None)) == 0
            torch.cuda.synchronize()
            result = c.cpu().numpy()
            np.testing.assert_array_equal(result, less_the_largest(wanted) if way == LARGEST else wanted)


def native_arch() -> str:
    import torch

    if torch.version.hip:
        return str(torch.cuda.get_device_properties(0).gcnArchName).split(":")[0]
    return "sm_{}{}".format(*torch.cuda.get_device_capability())

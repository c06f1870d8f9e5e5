"""Code objects that clang builds, executed from their own host code: right ones, and planted faults told apart."""

from __future__ import annotations

import ctypes
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.errors import InfrastructureError
from arena.platforms.cpu.amd_isa.disassembly import disassemble
from arena.platforms.cpu.amd_isa.execute import FIRST_WAVE_FIRST, LAST_WAVE_FIRST, TOGETHER
from arena.platforms.cpu.amd_isa.faults import MachineFault, NotModelled
from arena.platforms.cpu.amd_isa.hip_host import HipHost, build_runtime
from arena.platforms.cpu.amd_isa.memory import DeviceMemory
from arena.platforms.cross.compilers import hip_cross_toolchain
from arena.platforms.rocm.amd_code_object import CodeObject, CodeObjectError, bundled
from arena.platforms.rocm.hip_clang import find_clang
from arena.platforms.toolchains.base import Built, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import default_cache_root

Array = Any
HEAD = "#include <hip/hip_runtime.h>\n#include <hip/hip_fp16.h>\n"
TAIL = "\n}\n"
ENTRY = 'extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {\n'


def needs_clang() -> None:
    try:
        hip_cross_toolchain("gfx942")
    except InfrastructureError as problem:
        pytest.skip(str(problem))


def build(text: str, arch: str = "gfx942") -> Path:
    needs_clang()
    source = Source(HEAD + textwrap.dedent(text), "")
    built = hip_cross_toolchain(arch).build(source, Target(arch, 64))
    assert isinstance(built, Built), built.log
    return built.library


def objdump() -> Path:
    clang = find_clang()
    assert clang is not None
    return clang.with_name("llvm-objdump")


def run(text: str, x: Array, y: Array, n: int, arch: str = "gfx942", order: int = TOGETHER) -> HipHost:
    """Build, bind the two arrays, and call `entry`."""
    memory = DeviceMemory()
    memory.add_array(x, "x")
    memory.add_array(y, "y")
    runtime = build_runtime(BuildCache(default_cache_root()))
    host = HipHost(build(text, arch), runtime, arch, memory, objdump())
    host.order = order
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y)]
    assert host.call("entry", [*pointers, ctypes.c_int(n), ctypes.c_void_p(None)], 60.0) == 0
    return host


SCALE = """
    __device__ float factor = 2.0f;
    __constant__ float table[3] = {1.0f, 10.0f, 100.0f};
    __global__ void scale(const float* x, float* y, int n) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = x[i] * factor * table[i % 3];
    }
    extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {
        scale<<<(n + 95) / 96, 96, 0, stream>>>(x, y, n);
        return hipGetLastError();
    }
"""


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_kernel_with_globals_and_a_part_of_a_wave(arch: str) -> None:
    x = np.arange(200, dtype=np.float32)
    y = np.zeros(200, np.float32)
    host = run(SCALE, x, y, 200, arch)
    assert np.array_equal(y, x * 2 * np.array([1, 10, 100], np.float32)[np.arange(200) % 3])
    (launch,) = host.launches
    assert (launch.grid, launch.block, launch.dynamic_lds) == ((3, 1, 1), (96, 1, 1), 0)
    assert host.mnemonics()["global_store_dword"] >= 1


def test_grids_and_blocks_of_three_axes() -> None:
    text = """
        __global__ void number(float* y) {
            const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
            const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
            y[block * blockDim.x * blockDim.y * blockDim.z + thread] = 1000 * block + thread;
        }
        extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {
            number<<<dim3(2, 3, 2), dim3(5, 4, 6), 0, stream>>>(y);
            return hipGetLastError();
        }
    """
    y = np.zeros(12 * 120, np.float32)
    run(text, np.zeros(1, np.float32), y, 0)
    assert np.array_equal(y.reshape(12, 120), np.arange(12)[:, None] * 1000 + np.arange(120))


# A sum over a wave; right with 64 lanes, wrong where the kernel believes in 32.
SHUFFLE = """
    __global__ void sum(const float* x, float* y) {
        float mine = x[threadIdx.x];
        for (int step = FIRST; step > 0; step /= 2) mine += __shfl_xor(mine, step);
        if (threadIdx.x == 0) y[0] = mine;
    }
    extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {
        sum<<<1, 64, 0, stream>>>(x, y);
        return hipGetLastError();
    }
"""


def test_a_shuffle_over_32_lanes_gives_half_the_sum() -> None:
    x = np.arange(64, dtype=np.float32)
    right, wrong = np.zeros(1, np.float32), np.zeros(1, np.float32)
    run(SHUFFLE.replace("FIRST", "32"), x, right, 0)
    run(SHUFFLE.replace("FIRST", "16"), x, wrong, 0)
    assert right[0] == x.sum()
    assert wrong[0] == x[:32].sum()


# 32 × 32 × 8 in float16; ROW is the row that register r of a lane is taken for.
MATRIX = """
    typedef _Float16 half4 __attribute__((ext_vector_type(4)));
    typedef float float16 __attribute__((ext_vector_type(16)));
    __global__ void product(const float* x, float* y) {
        const int lane = threadIdx.x;
        half4 a, b;
        for (int k = 0; k < 4; ++k) {
            a[k] = x[(lane % 32) * 8 + lane / 32 * 4 + k];
            b[k] = x[256 + (lane % 32) * 8 + lane / 32 * 4 + k];
        }
        float16 c = {0};
        c = __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, c, 0, 0, 0);
        for (int r = 0; r < 16; ++r) y[(ROW) * 32 + lane % 32] = c[r];
    }
    extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {
        product<<<1, 64, 0, stream>>>(x, y);
        return hipGetLastError();
    }
"""


def test_a_wrong_layout_of_a_matrix_product_is_told_from_the_right_one() -> None:
    x = np.random.default_rng(1).integers(-4, 5, 512).astype(np.float32)
    wanted = x[:256].reshape(32, 8) @ x[256:].reshape(32, 8).T
    right, wrong = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    run(MATRIX.replace("ROW", "8 * (r / 4) + 4 * (lane / 32) + r % 4"), x, right, 0)
    run(MATRIX.replace("ROW", "16 * (lane / 32) + r"), x, wrong, 0)
    assert np.array_equal(right, wanted)
    assert not np.array_equal(wrong, wanted)
    assert np.array_equal(np.sort(wrong, axis=0), np.sort(wanted, axis=0))  # only the rows are in other places


# A tree reduction over four waves in dynamic LDS.
TREE = """
    __global__ void sum(const float* x, float* y, int n) {
        extern __shared__ float parts[];
        const int i = threadIdx.x;
        parts[i + OFFSET] = i < n ? x[i] : 0.0f;
        __syncthreads();
        for (int step = 128; step > 0; step /= 2) {
            if (i < step) parts[i + OFFSET] += parts[i + step + OFFSET];
            __syncthreads();
        }
        if (i == 0) y[0] = parts[OFFSET];
    }
    extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {
        sum<<<1, 256, 256 * sizeof(float), stream>>>(x, y, n);
        return hipGetLastError();
    }
"""


def test_an_overflow_of_lds_is_a_fault() -> None:
    x, y = np.arange(250, dtype=np.float32), np.zeros(1, np.float32)
    run(TREE.replace("OFFSET", "0"), x, y, 250)
    assert y[0] == x.sum()
    with pytest.raises(MachineFault, match="LDS overflow"):
        run(TREE.replace("OFFSET", "1"), x, y, 250)


def test_a_missing_barrier_shows_in_one_of_the_orders_of_waves() -> None:
    x, y = np.arange(250, dtype=np.float32), np.zeros(1, np.float32)
    right, orders = TREE.replace("OFFSET", "0"), (TOGETHER, FIRST_WAVE_FIRST, LAST_WAVE_FIRST)
    found: dict[str, list[bool]] = {}
    for name, text in (("right", right), ("wrong", right.replace("__syncthreads();", "", 1))):
        for order in orders:
            run(text, x, y, 250, order=order)
            found.setdefault(name, []).append(bool(y[0] == x.sum()))
    assert found["right"] == [True, True, True]
    assert not all(found["wrong"])


def test_a_lane_past_the_end_is_a_fault() -> None:
    x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
    with pytest.raises(MachineFault, match=r"past the end of [xy]"):
        run(SCALE.replace("if (i < n)", "if (i <= n)"), x, y, 100)


def test_more_lds_than_a_workgroup_can_have_is_a_fault() -> None:
    x, y = np.ones(256, np.float32), np.zeros(1, np.float32)
    with pytest.raises(MachineFault, match="LDS overflow: 65540 bytes"):
        run(TREE.replace("OFFSET", "0").replace("256 * sizeof(float)", "65540"), x, y, 256)


def test_scratch_memory_and_calls() -> None:
    text = """
        __device__ __attribute__((noinline)) float pick(const float* values, int at) { return values[at] * 2.0f; }
        __global__ void local(const float* x, float* y, int n) {
            float values[40];
            for (int i = 0; i < 40; ++i) values[i] = x[i] + threadIdx.x;
            y[threadIdx.x] = pick(values, n);
        }
        extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {
            local<<<1, 64, 0, stream>>>(x, y, n);
            return hipGetLastError();
        }
    """
    x, y = np.arange(40, dtype=np.float32), np.zeros(64, np.float32)
    run(text, x, y, 7)
    assert np.array_equal(y, 2 * (7 + np.arange(64, dtype=np.float32)))


def test_accumulation_registers_follow_the_others() -> None:
    text = """
        __global__ void through(const float* x, float* y) {
            float held[4];
            for (int i = 0; i < 4; ++i)
                asm volatile("v_accvgpr_write_b32 %0, %1" : "=a"(held[i]) : "v"(x[64 * i + threadIdx.x]));
            for (int i = 0; i < 4; ++i) {
                float out;
                asm volatile("v_accvgpr_read_b32 %0, %1" : "=v"(out) : "a"(held[3 - i]));
                y[64 * i + threadIdx.x] = out;
            }
        }
        extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {
            through<<<1, 64, 0, stream>>>(x, y);
            return hipGetLastError();
        }
    """
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    host = run(text, x, y, 0)
    assert host.mnemonics()["v_accvgpr_write_b32"] == 4
    assert np.array_equal(y.reshape(4, 64), x.reshape(4, 64)[::-1])


@pytest.mark.parametrize("threads", [0, 1025])
def test_a_launch_that_no_gpu_takes_is_an_error_of_the_runtime(threads: int) -> None:
    memory, x = DeviceMemory(), np.zeros(1, np.float32)
    text = SCALE.replace("scale<<<(n + 95) / 96, 96, 0, stream>>>", "scale<<<1, n, 0, stream>>>")
    host = HipHost(build(text), build_runtime(BuildCache(default_cache_root())), "gfx942", memory, objdump())
    pointer = ctypes.c_void_p(x.ctypes.data)
    assert host.call("entry", [pointer, pointer, ctypes.c_int(threads), ctypes.c_void_p(None)]) == 9
    assert host.launches == []


def test_memory_that_the_host_code_allocates_is_the_device_s() -> None:
    text = """
        __global__ void twice(const float* x, float* y, int n) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = 2 * x[i];
        }
        extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {
            float* held = nullptr;
            if (hipMallocAsync((void**)&held, n * sizeof(float), stream) != hipSuccess) return hipErrorOutOfMemory;
            twice<<<1, 64, 0, stream>>>(x, held, n);
            twice<<<1, 64, 0, stream>>>(held, y, n + EXTRA);
            hipMemcpyAsync(y, held, sizeof(float), hipMemcpyDeviceToDevice, stream);
            return hipFreeAsync(held, stream);
        }
    """
    x, y = np.arange(50, dtype=np.float32), np.zeros(60, np.float32)
    run(text.replace("EXTRA", "0"), x, y, 50)
    assert np.array_equal(y[1:50], 4 * x[1:])
    with pytest.raises(MachineFault, match="past the end of an allocation"):
        run(text.replace("EXTRA", "1"), x, y, 50)


def test_host_code_sets_and_finds_device_variables() -> None:
    text = SCALE.replace(
        "scale<<<",
        """
        const float factors[1] = {3.0f}, middle = 20.0f;
        const auto code = hipMemcpyToSymbol(HIP_SYMBOL(factor), factors, sizeof(float), 0, hipMemcpyHostToDevice);
        if (code != hipSuccess) return code;
        void* first = nullptr;
        if (hipGetSymbolAddress(&first, HIP_SYMBOL(table)) != hipSuccess) return hipErrorUnknown;
        hipMemcpyAsync(static_cast<float*>(first) + 1, &middle, sizeof(float), hipMemcpyHostToDevice, stream);
        scale<<<""",
    )
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    run(text, x, y, 6)
    assert y.tolist() == [0.0, 60.0, 600.0, 9.0, 240.0, 1500.0]


def test_what_the_host_code_needs_beyond_the_runtime_is_named() -> None:
    text = """
        extern "C" hipError_t entry(const float* x, float* y, int n, hipStream_t stream) {
            return hipProfilerStart();
        }
        __global__ void nothing() {}
        void launch() { nothing<<<1, 1>>>(); }
    """
    with pytest.raises(NotModelled, match="hipProfilerStart"):
        run(text, np.zeros(1, np.float32), np.zeros(1, np.float32), 0)


@pytest.mark.parametrize("condition", ["i >= n", "i == 3"])
def test_a_kernel_that_prints_is_not_checked(condition: str) -> None:
    text = SCALE.replace("if (i < n)", f'if (i < n && {condition}) printf("%d", i);\n        if (i < n)')
    x, y = np.ones(10, np.float32), np.zeros(10, np.float32)
    text = "#include <stdio.h>\n" + textwrap.dedent(text)
    if condition == "i >= n":
        run(text, x, y, 10)
        assert y[1] == 20.0
        return
    with pytest.raises(NotModelled, match="service of the runtime"):
        run(text, x, y, 10)


def test_code_objects_are_read_and_others_refused() -> None:
    (data,) = bundled(build(SCALE).read_bytes(), "gfx942")
    code = CodeObject(data)
    (name,) = code.kernels
    kernel = code.kernels[name]
    assert [p.size for p in kernel.parameters if not p.hidden] == [8, 8, 4]
    assert code.descriptor(kernel).entry == code.symbols[name][0]
    assert code.symbols["factor"][1] == 4
    instructions = disassemble(data, objdump())
    assert instructions[code.descriptor(kernel).entry].name.startswith("s_")
    assert any(ins.name == "s_endpgm" for ins in instructions.values())
    with pytest.raises(CodeObjectError):
        CodeObject(b"\x7fELF" + bytes(100))
    assert bundled(b"nothing", "gfx942") == []

"""AMD's matrix builtins by name: the same source on the CPU and as gfx950's machine code, and what misuse does."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.errors import InfrastructureError
from arena.platforms.cpu.amd_isa.conversions import from_bfloat16, from_float8, to_bfloat16, to_float8
from arena.platforms.cpu.amd_isa.hip_host import HipHost, build_runtime
from arena.platforms.cpu.amd_isa.memory import DeviceMemory
from arena.platforms.cpu.hip.source import rewrite
from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.cross.compilers import hip_cross_toolchain
from arena.platforms.rocm.hip_clang import find_clang
from arena.platforms.toolchains.base import Built, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_build import default_cache_root
from arena.platforms.toolchains.hip_compilers import find
from tests.platforms.test_amd_isa_matrix import INPUTS, OUTPUTS

Array = Any
pytestmark = pytest.mark.skipif(find()[0].missing, reason="no C++ compiler on this machine")
HEADER = "#pragma once\n#include <hip/hip_runtime.h>\n#include <hip/hip_fp16.h>\n"
KERNEL = """#include "task.h"
LEFT;
RIGHT;
typedef SUM Sums __attribute__((ext_vector_type(COUNT)));
__global__ void kernel(const Left* a, const Right* b, Sums* c) {
    Sums sums = c[threadIdx.x];
    sums = __builtin_amdgcn_mfma_NAME(a[threadIdx.x], b[threadIdx.x], sums, 0, 0, 0);
    c[threadIdx.x] = sums * static_cast<SUM>(2);
}
extern "C" hipError_t entry(const void* a, const void* b, void* c, hipStream_t stream) {
    kernel<<<1, 64, 0, stream>>>(static_cast<const Left*>(a), static_cast<const Right*>(b), static_cast<Sums*>(c));
    return hipGetLastError();
}
"""
HALVES = "typedef _Float16 {} __attribute__((ext_vector_type(4)))"
SHORTS = "using {} = short __attribute__((ext_vector_type(4)))"
FLOAT, OCTETS = "using {} = float", "using {} = long"
# The builtin's name, its mnemonic, rows, depth, formats of both inputs, and how an operand is declared.
BUILTINS = {
    "f32_32x32x8f16": ("v_mfma_f32_32x32x8_f16", 32, 8, "f16", "f16", HALVES),
    "f32_16x16x16f16": ("v_mfma_f32_16x16x16_f16", 16, 16, "f16", "f16", HALVES),
    "f32_32x32x8bf16_1k": ("v_mfma_f32_32x32x8_bf16", 32, 8, "bf16", "bf16", SHORTS),
    "f32_16x16x16bf16_1k": ("v_mfma_f32_16x16x16_bf16", 16, 16, "bf16", "bf16", SHORTS),
    "f32_32x32x2f32": ("v_mfma_f32_32x32x2_f32", 32, 2, "f32", "f32", FLOAT),
    "f32_16x16x4f32": ("v_mfma_f32_16x16x4_f32", 16, 4, "f32", "f32", FLOAT),
    "f32_16x16x32_fp8_fp8": ("v_mfma_f32_16x16x32_fp8_fp8", 16, 32, "fp8", "fp8", OCTETS),
    "f32_32x32x16_bf8_fp8": ("v_mfma_f32_32x32x16_bf8_fp8", 32, 16, "bf8", "fp8", OCTETS),
    "i32_16x16x32_i8": ("v_mfma_i32_16x16x32_i8", 16, 32, "i8", "i8", OCTETS),
    "i32_32x32x16_i8": ("v_mfma_i32_32x32x16_i8", 32, 16, "i8", "i8", OCTETS),
}
DRAWN = {"f32": np.float32, "f16": np.float16, "i8": np.int8}


def kernel(name: str) -> Source:
    _, side, _, _, _, operand = BUILTINS[name]
    text = (
        KERNEL.replace("NAME", name).replace("LEFT", operand.format("Left")).replace("RIGHT", operand.format("Right"))
    )
    summed = "int" if name.startswith("i32") else "float"
    return Source(text.replace("COUNT", str(side * side // 64)).replace("SUM", summed), HEADER)


def encode(values: Array, kind: str) -> tuple[Array, Array]:
    """Return numbers as an input's items, and what these stand for."""
    if kind == "bf16":
        items = to_bfloat16(values)
        return items, from_bfloat16(items).astype(np.float64)
    if kind in ("fp8", "bf8"):
        items = to_float8(values, kind, "gfx950")
        return items, from_float8(items, kind, "gfx950").astype(np.float64)
    items = values.astype(DRAWN[kind])
    return items, items.astype(np.float64)


def call_arrays(name: str) -> tuple[list[Array], Array]:
    """Return what the lanes hold of a, b and c, and 2 (a b + c), as the lanes hold it."""
    mnemonic, side, depth, left, right, _ = BUILTINS[name]
    rng, held, values = np.random.default_rng(side + depth), [], []
    for kind in (left, right):
        items, stands_for = encode(np.rint(rng.normal(size=(side, depth)) * 4), kind)
        lanes = np.zeros((64, side * depth // 64), items.dtype)
        for i, k in np.ndindex(side, depth):
            lanes[INPUTS[mnemonic](0, i, k)] = items[i, k]
        held.append(lanes)
        values.append(stands_for)
    summed: Any = np.int32 if name.startswith("i32") else np.float32
    addend = np.rint(rng.normal(size=(side, side)) * 8)
    product = 2 * (values[0] @ values[1].T + addend)
    c, wanted = (np.zeros((64, side * side // 64), summed) for _ in range(2))
    for i, j in np.ndindex(side, side):
        place = OUTPUTS[mnemonic](0, i, j)
        c[place], wanted[place] = addend[i, j], product[i, j]
    return [*held, c], wanted


def cpu_library(source: Source, wave_size: int = 64) -> tuple[Path, Path]:
    """Return the built library and the runtime that it needs."""
    toolchain = HipCpuToolchain(BuildCache(default_cache_root()))
    built = toolchain.build(source, Target("cpu", wave_size))
    assert isinstance(built, Built), built.log
    return built.library, toolchain.runtime


@pytest.mark.parametrize("name", BUILTINS)
def test_a_builtin_multiplies_on_the_cpu(name: str) -> None:
    library, runtime = cpu_library(kernel(name))
    arrays, wanted = call_arrays(name)
    ctypes.CDLL(str(runtime), ctypes.RTLD_GLOBAL)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    assert ctypes.CDLL(str(library)).entry(*pointers, ctypes.c_void_p(None)) == 0
    np.testing.assert_array_equal(arrays[2], wanted)


@pytest.mark.slow(but=["16x16x16bf16", "32_32x32x8f16"])
@pytest.mark.parametrize("name", BUILTINS)
def test_the_same_source_multiplies_as_machine_code(name: str) -> None:
    clang = find_clang()
    try:
        toolchain = hip_cross_toolchain("gfx950")
    except InfrastructureError as missing:
        pytest.skip(str(missing))
    assert clang is not None
    built = toolchain.build(kernel(name), Target("gfx950", 64))
    assert isinstance(built, Built), built.log
    arrays, wanted = call_arrays(name)
    memory = DeviceMemory()
    for what, array in zip("abc", arrays, strict=True):
        memory.add_array(array, what)
    runtime = build_runtime(BuildCache(default_cache_root()))
    host = HipHost(built.library, runtime, "gfx950", memory, clang.with_name("llvm-objdump"))
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    assert host.call("entry", [*pointers, ctypes.c_void_p(None)], 60.0) == 0
    np.testing.assert_array_equal(arrays[2], wanted)
    assert host.mnemonics()[BUILTINS[name][0]] >= 1


def stderr_of(source: Source, wave_size: int) -> str:
    """Return what a call prints that must end its process."""
    library, runtime = cpu_library(source, wave_size)
    script = (
        f"import ctypes; ctypes.CDLL({str(runtime)!r}, ctypes.RTLD_GLOBAL); "
        "room = [(ctypes.c_char * 4096)() for _ in 'abc']; "
        f"ctypes.CDLL({str(library)!r}).entry(*room, None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode < 0
    return done.stderr


def test_a_wave_without_all_its_lanes_ends_with_a_message() -> None:
    source = kernel("f32_16x16x16f16")
    short = Source(source.kernel.replace("<<<1, 64,", "<<<1, 40,"), HEADER)
    assert "40 lanes of a wave of 64 are at the MFMA operation of line 7" in stderr_of(short, 64)
    diverged = Source(source.kernel.replace("sums = __", "if (threadIdx.x != 5) sums = __"), HEADER)
    assert "63 lanes of a wave of 64 are at the MFMA operation of line 7" in stderr_of(diverged, 64)


def test_an_operation_of_another_wave_size_ends_with_a_message() -> None:
    message = "32 lanes of a wave of 32 are at the MFMA operation of line 7, which takes a wave of 64"
    assert message in stderr_of(kernel("f32_16x16x16f16"), 32)


def test_modifiers_end_with_a_message() -> None:
    source = kernel("f32_16x16x16f16")
    modified = Source(source.kernel.replace("sums, 0, 0, 0", "sums, 0, 0, 1"), HEADER)
    assert "line 7: the last three arguments of a matrix operation must be 0 here" in stderr_of(modified, 64)


def test_names_of_vectors_are_rewritten_line_by_line() -> None:
    text = (
        "typedef _Float16 h4\n    __attribute__((ext_vector_type(4)));\n"
        "using f4 = __attribute__((__ext_vector_type__(2 * 2))) float;\n"
        "// typedef int i2 __attribute__((ext_vector_type(2)));\n"
        "float f __attribute__((ext_vector_type(4)));\n"
    )
    assert rewrite(text, "k") == (
        '#line 1 "k"\nusing h4 = ::hip_cpu::Vector<_Float16, 4>\n;\n'
        "using f4 = ::hip_cpu::Vector<float, 2 * 2>;\n"
        "// typedef int i2 __attribute__((ext_vector_type(2)));\n"
        "float f __attribute__((ext_vector_type(4)));\n"
    )

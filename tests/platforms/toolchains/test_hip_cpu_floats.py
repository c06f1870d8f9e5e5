"""__half, __hip_bfloat16 and fp8 on the CPU agree with ml_dtypes and numpy, bit by bit."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from arena.platforms.cpu.hip.toolchain import HipCpuToolchain
from arena.platforms.toolchains.base import Built, Source, Target
from arena.platforms.toolchains.build_cache import BuildCache
from arena.platforms.toolchains.hip_compilers import find

pytestmark = [
    pytest.mark.skipif(find()[0].missing, reason="no C++ compiler on this machine"),
]

KERNEL = r"""
#include "task.h"
#include <hip/hip_fp16.h>
#include <hip/hip_bf16.h>
#include <hip/hip_fp8.h>
#define MAP(name, In, Out, expression)                                               \
    __global__ void name##_kernel(const In* x, Out* y, int n) {                      \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                         \
        if (i < n) y[i] = (expression);                                              \
    }                                                                                \
    extern "C" hipError_t name(const In* x, Out* y, int64_t n, hipStream_t stream) { \
        name##_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);                 \
        return hipGetLastError();                                                    \
    }
MAP(from_half, __half, float, __half2float(x[i]))
MAP(to_half, float, __half, __float2half(x[i]))
MAP(double_to_half, double, __half, __double2half(x[i]))
MAP(down_half, float, __half, __float2half_rd(x[i]))
MAP(zero_half, float, __half, __float2half_rz(x[i]))
MAP(from_bf16, __hip_bfloat16, float, __bfloat162float(x[i]))
MAP(to_bf16, float, __hip_bfloat16, __float2bfloat16(x[i]))
MAP(long_to_bf16, long long, __hip_bfloat16, __ll2bfloat16_rn(x[i]))
MAP(from_e4m3, __hip_fp8_e4m3, float, static_cast<float>(x[i]))
MAP(to_e4m3, float, __hip_fp8_e4m3, __hip_fp8_e4m3(x[i]))
MAP(from_fnuz, __hip_fp8_e4m3_fnuz, float, static_cast<float>(x[i]))
MAP(to_fnuz, float, __hip_fp8_e4m3_fnuz, __hip_fp8_e4m3_fnuz(x[i]))
MAP(from_e5m2, __hip_fp8_e5m2, float, static_cast<float>(x[i]))
MAP(to_e5m2, float, __hip_fp8_e5m2, __hip_fp8_e5m2(x[i]))
MAP(half_sums, __half2, __half, __hadd(x[i].x, x[i].y))
MAP(half_products, __half2, __half, x[i].x * x[i].y)
MAP(half_quotients, __half2, __half, x[i].x / x[i].y)
MAP(half_fma, __half2, __half, __hfma(x[i].x, x[i].y, x[i].x))
MAP(bf16_sums, __hip_bfloat162, __hip_bfloat16, x[i].x + x[i].y)
MAP(bf16_products, __hip_bfloat162, __hip_bfloat16, __hmul(x[i].x, x[i].y))
"""
HEADER = "#pragma once\n#include <hip/hip_runtime.h>\n"

Map = Callable[[str, np.ndarray, Any], np.ndarray]


@pytest.fixture(scope="module")
def apply(tmp_path_factory: pytest.TempPathFactory) -> Map:
    toolchain = HipCpuToolchain(BuildCache(tmp_path_factory.mktemp("builds")))
    built = toolchain.build(Source(KERNEL, HEADER), Target("cpu"))
    assert isinstance(built, Built), built.log
    ctypes.CDLL(str(toolchain.runtime), ctypes.RTLD_GLOBAL)  # as a worker has, before any candidate
    library = ctypes.CDLL(str(built.library))

    def call(entry: str, x: np.ndarray, dtype: Any) -> np.ndarray:
        x = np.ascontiguousarray(x)
        y = np.zeros(len(x), dtype)
        pointers = (ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
        assert getattr(library, entry)(*pointers, ctypes.c_int64(len(x)), None) == 0
        return y

    return call


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal bit by bit, any NaN like any other."""
    nan = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float32)), nan)
    word = f"u{got.dtype.itemsize}"
    np.testing.assert_array_equal(got.view(word)[~nan], expected.view(word)[~nan])


def all_patterns(dtype: Any) -> np.ndarray:
    return np.arange(65536, dtype=np.uint16).view(dtype)


def many_floats(dtype: Any) -> np.ndarray:
    """Random bits, the values of `dtype`, the midpoints between them, and what is next to these."""
    random = np.random.default_rng(1).integers(0, 2**32, 200_000, dtype=np.uint32).view(np.float32)
    size = np.dtype(dtype).itemsize
    values = np.arange(256**size, dtype=f"u{size}").view(dtype).astype(np.float32)
    values = np.unique(values[np.isfinite(values)])
    middles = values[:-1] / 2 + values[1:] / 2
    near = [np.nextafter(middles, np.float32(side)) for side in (-np.inf, np.inf)]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 65519.9, 65520.0, 3.4e38, 1e-45], np.float32)
    return np.concatenate([random, values, middles, *near, special])


@pytest.mark.parametrize(("entry", "dtype"), [("from_half", np.float16), ("from_bf16", ml_dtypes.bfloat16)])
def test_every_16_bit_pattern_becomes_the_right_float(apply: Map, entry: str, dtype: Any) -> None:
    patterns = all_patterns(dtype)
    assert_same(apply(entry, patterns, np.float32), patterns.astype(np.float32))


@pytest.mark.parametrize(
    ("entry", "dtype"),
    [
        ("from_e4m3", ml_dtypes.float8_e4m3fn),
        ("from_fnuz", ml_dtypes.float8_e4m3fnuz),
        ("from_e5m2", ml_dtypes.float8_e5m2),
    ],
)
def test_every_8_bit_pattern_becomes_the_right_float(apply: Map, entry: str, dtype: Any) -> None:
    patterns = np.arange(256, dtype=np.uint8).view(dtype)
    assert_same(apply(entry, patterns, np.float32), patterns.astype(np.float32))


@pytest.mark.parametrize(("entry", "dtype"), [("to_half", np.float16), ("to_bf16", ml_dtypes.bfloat16)])
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_floats_round_to_nearest_even(apply: Map, entry: str, dtype: Any) -> None:
    x = many_floats(dtype)
    assert_same(apply(entry, x, dtype), x.astype(dtype))


@pytest.mark.parametrize(
    ("entry", "dtype", "largest"),
    [
        ("to_e4m3", ml_dtypes.float8_e4m3fn, 448.0),
        ("to_fnuz", ml_dtypes.float8_e4m3fnuz, 240.0),
        ("to_e5m2", ml_dtypes.float8_e5m2, 57344.0),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_fp8_rounds_and_saturates(apply: Map, entry: str, dtype: Any, largest: float) -> None:
    x = many_floats(dtype)
    clipped = np.where(np.isnan(x), x, np.clip(x, -largest, largest))
    assert_same(apply(entry, x, dtype), clipped.astype(dtype))


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_double_is_rounded_once(apply: Map) -> None:
    middles = (1 + 2.0**-11) * (1 + np.array([0.0, 2.0**-40, -(2.0**-40)]))
    x = np.concatenate([middles, -middles, np.random.default_rng(2).standard_normal(10_000) * 1e4])
    assert_same(apply("double_to_half", x, np.float16), x.astype(np.float16))


def test_directed_rounding(apply: Map) -> None:
    x = np.random.default_rng(4).standard_normal(20_000).astype(np.float32)
    down, to_zero = apply("down_half", x, np.float16), apply("zero_half", x, np.float16)
    assert (down.astype(np.float32) <= x).all()
    assert (np.nextafter(down, np.float16(np.inf)).astype(np.float32) > x).all()
    np.testing.assert_array_equal(np.abs(to_zero.astype(np.float32)) <= np.abs(x), True)
    np.testing.assert_array_equal(to_zero[x > 0], down[x > 0])


def test_large_integers_are_rounded_once(apply: Map) -> None:
    x = np.array([2**62 + 2**54 + 1, 2**62 + 2**54, -(2**62) - 2**54 - 1, 3, 0, -1], np.int64)
    got = apply("long_to_bf16", x, ml_dtypes.bfloat16).astype(np.float64)
    assert got.tolist() == [2.0**62 + 2.0**55, 2.0**62, -(2.0**62) - 2.0**55, 3.0, 0.0, -1.0]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arithmetic_is_correctly_rounded(apply: Map) -> None:
    pairs = np.random.default_rng(5).integers(0, 65536, (200_000, 2), dtype=np.uint16)
    half, bf16 = pairs.view(np.float16), pairs.view(ml_dtypes.bfloat16).astype(np.float32)
    a, b = half[:, 0].astype(np.float64), half[:, 1].astype(np.float64)
    assert_same(apply("half_sums", half, np.float16), (a + b).astype(np.float16))
    assert_same(apply("half_products", half, np.float16), (a * b).astype(np.float16))
    assert_same(apply("half_quotients", half, np.float16), (half[:, 0] / half[:, 1]))
    bf16_sums = (bf16[:, 0] + bf16[:, 1]).astype(ml_dtypes.bfloat16)
    assert_same(apply("bf16_sums", pairs, ml_dtypes.bfloat16), bf16_sums)
    assert_same(apply("bf16_products", pairs, ml_dtypes.bfloat16), (bf16[:, 0] * bf16[:, 1]).astype(ml_dtypes.bfloat16))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_fused_multiply_add_is_rounded_once(apply: Map) -> None:
    pairs = np.random.default_rng(6).integers(0, 65536, (50_000, 2), dtype=np.uint16).view(np.float16)
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    a, b = pairs[:, 0].astype(np.longdouble), pairs[:, 1].astype(np.longdouble)
    exact = a * b + a
    got = apply("half_fma", pairs, np.float16)
    inside = np.abs(exact) < 65504
    error = np.abs(got.astype(np.longdouble) - exact)[inside]
    for side in (-np.inf, np.inf):
        other = np.nextafter(got, np.float16(side)).astype(np.longdouble)[inside]
        assert (error <= np.abs(other - exact[inside])).all()

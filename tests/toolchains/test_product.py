"""`product.h`: by matrix units where an operand has 16 bits and there are many results, else in float32."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena.emulation.hip.toolchain import HipCpuToolchain
from arena.toolchains.base import Built, Source, Target
from arena.toolchains.build_cache import BuildCache
from arena.toolchains.hip_build import default_cache_root
from arena.toolchains.hip_compilers import find
from arena.toolchains.kernel_library import inlined

HEADER = "#pragma once\n#include <stdint.h>\n#include <hip/hip_runtime.h>\n"
KERNELS = Path(__file__).with_suffix(".hip")
HALVES, MIXED, FLOATS = range(3)
FEW, MANY = (1, 33, 70, 35), (2, 300, 130, 35)
"""Batch, rows, columns and depth: below and above as many results as matrix units are used for."""


@pytest.fixture(scope="module", params=[64, 32], ids=["wave64", "wave32"])
def entry(request: pytest.FixtureRequest) -> Any:
    if find()[0].missing:
        pytest.skip("no C++ compiler on this machine")
    toolchain = HipCpuToolchain(BuildCache(default_cache_root()))
    text = inlined(KERNELS.read_text(encoding="utf-8"), "kernel.hip")
    built = toolchain.build(Source(text, HEADER), Target("cpu", request.param))
    assert isinstance(built, Built), built.log
    ctypes.CDLL(str(toolchain.runtime), ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(built.library)).entry


def product(entry: Any, sizes: tuple[int, int, int, int], kind: int, across: int, step: float) -> tuple[Any, Any]:
    """Return c and what it should be, for operands that are multiples of `step` near 1; `across`: both transposed."""
    batch, m, n, k = sizes
    rng = np.random.default_rng(m + kind)
    a = 1 + step * rng.integers(-4, 5, (batch, m, k)).astype(np.float64)
    b = rng.integers(-4, 5, (batch, k, n)).astype(np.float64)
    kinds = {HALVES: (np.float16, np.float16), MIXED: (np.float32, np.float16), FLOATS: (np.float32, np.float32)}[kind]
    stored = [np.swapaxes(x, 1, 2) if across else x for x in (a, b)]
    held = [np.ascontiguousarray(x, dtype) for x, dtype in zip(stored, kinds, strict=True)]
    c = np.full((batch, m, n), np.nan, np.float32)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*held, c)]
    numbers = [ctypes.c_int64(number) for number in (batch, m, n, k, kind, across)]
    assert entry(*pointers, *numbers, ctypes.c_void_p(None)) == 0
    return c, a @ b


@pytest.mark.parametrize("kind", [HALVES, MIXED, FLOATS], ids=["halves", "mixed", "floats"])
@pytest.mark.parametrize("sizes", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("across", [0, 1], ids=["rows", "columns"])
def test_products_of_what_16_bits_hold_are_exact(
    entry: Any, sizes: tuple[int, int, int, int], kind: int, across: int
) -> None:
    result, wanted = product(entry, sizes, kind, across, 0.25)
    np.testing.assert_array_equal(result, wanted)


def test_only_many_results_round_the_wider_operand(entry: Any) -> None:
    fine = 2.0**-16  # which float16 does not hold near 1
    few, wanted = product(entry, FEW, MIXED, 0, fine)
    np.testing.assert_array_equal(few, wanted)
    many, wanted = product(entry, MANY, MIXED, 0, fine)
    assert np.abs(many - wanted).max() > 0 and np.abs(many - wanted).max() < 35 * 4 * 2.0**-11
    floats, wanted = product(entry, MANY, FLOATS, 0, fine)
    np.testing.assert_array_equal(floats, wanted)

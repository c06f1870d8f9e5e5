"""`product.h`, the matrix product of baseline kernels: right in each of its ways, and when it rounds operands."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from arena.platforms.toolchains.hip_compilers import find
from tests.platforms.toolchains.cpu_library import Array, CpuLibrary, aligned

KERNELS = Path(__file__).with_suffix(".hip")
HALVES, MIXED, MIXED_BFLOAT16, ROUNDED, SINGLE = range(5)
OPERANDS = (
    (np.float16, np.float16),
    (np.float32, np.float16),
    (np.float32, ml_dtypes.bfloat16),
    (np.float32, np.float32),
    (np.float32, np.float32),
)
FEW, MANY, MANY_TILES = (2, 67, 35, 41), (2, 300, 130, 41), (256, 17, 16, 5)
"""batch, rows, columns and depth: without matrix units, with them, and in tiles of 128 × 128"""


@pytest.fixture(scope="module", params=[64, 32], ids=["wave64", "wave32"])
def library(request: pytest.FixtureRequest) -> CpuLibrary:
    if find()[0].missing:
        pytest.skip("no C++ compiler on this machine")
    return CpuLibrary(KERNELS, request.param)


def multiply(library: CpuLibrary, a: Array, b: Array, kind: int, layouts: int = 0) -> tuple[Array, Array]:
    """Return what `product` finds less what it adds by place, and the product of the operands as they are."""
    (batch, rows, depth), columns = a.shape, b.shape[2]
    a, b = (values.astype(dtype) for values, dtype in zip((a, b), OPERANDS[kind], strict=True))
    c = np.full((batch, rows, columns), np.nan, np.float32)
    left, right = (values.transpose(0, 2, 1) if layouts & bit else values for values, bit in ((a, 2), (b, 1)))
    library.entry((aligned(left), aligned(right), c), batch, rows, columns, depth, layouts, kind)
    z, m, n = np.ogrid[:batch, :rows, :columns]
    return c - (1000 * z + 10 * m + n), a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.slow(but=["few"])
@pytest.mark.parametrize("kind", range(5), ids=["halves", "mixed", "bfloat16", "rounded", "single"])
@pytest.mark.parametrize("sizes", [FEW, MANY, MANY_TILES], ids=["few", "many", "many_tiles"])
def test_products_of_integers_are_exact(library: CpuLibrary, sizes: tuple[int, int, int, int], kind: int) -> None:
    batch, rows, columns, depth = sizes
    rng = np.random.default_rng(kind)
    a, b = rng.integers(-4, 5, (batch, rows, depth)), rng.integers(-4, 5, (batch, depth, columns))
    for layouts in range(4):
        np.testing.assert_array_equal(*multiply(library, a, b, kind, layouts))


@pytest.mark.parametrize(
    ("kind", "sizes", "rounds"),
    [
        *((kind, sizes, sizes == MANY) for kind in (MIXED, MIXED_BFLOAT16, ROUNDED) for sizes in (FEW, MANY)),
        (SINGLE, MANY, False),
    ],
)
def test_operands_are_rounded_where_asked_and_results_are_many(
    library: CpuLibrary, kind: int, sizes: tuple[int, int, int, int], *, rounds: bool
) -> None:
    batch, rows, columns, depth = sizes
    a = np.full((batch, rows, depth), 1 + 2.0**-12)  # 1 in float16
    result, wanted = multiply(library, a, np.ones((batch, depth, columns)), kind)
    np.testing.assert_allclose(result, depth if rounds else wanted, rtol=0, atol=1e-3)
    assert wanted[0, 0, 0] - depth > 5e-3

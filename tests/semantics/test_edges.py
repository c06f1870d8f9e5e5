"""Counts at the sizes that kernels hard-code, between them, and nowhere else."""

from __future__ import annotations

import pytest
import torch

from arena.semantics.edges import HARD_CODED, draw_counts


@pytest.mark.parametrize(("low", "high"), [(1, 32_000), (1, 100), (7, 7), (200, 1500)])
def test_counts_reach_every_edge_and_what_lies_between(low: int, high: int) -> None:
    drawn = draw_counts(low, high, (40, 500), torch.Generator().manual_seed(0)).flatten()
    found = set(drawn.tolist())
    assert drawn.dtype is torch.int64
    assert (min(found), max(found)) == (low, high)
    near = {size + step for size in HARD_CODED for step in (-1, 0, 1)}
    assert {size for size in near if low <= size <= high} <= found
    gaps = [(a, b) for a, b in zip((low, *HARD_CODED), (*HARD_CODED, high), strict=True) if b - a > 8 and b <= high]
    assert all(any(a + 1 < value < b - 1 for value in found) for a, b in gaps if a >= low)

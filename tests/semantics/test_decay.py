"""Slopes, log-decays inside chunks and the products that they weight, against definitions that are spelt out."""

from __future__ import annotations

import math

import pytest
import torch

from arena.semantics.chunks import chunk_begins
from arena.semantics.decay import GATE_FLOOR, decayed_products, draw_gated_chunks, draw_summed_gates, head_slopes


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def test_slopes_fall_geometrically_from_head_to_head() -> None:
    slopes = head_slopes(4, _generator(), 3)
    assert slopes.shape == (3, 4)
    torch.testing.assert_close(slopes[:, 1:] / slopes[:, :-1], torch.full((3, 3), 0.25))
    assert bool((slopes[:, 0] <= 0.25).all()) and bool((slopes[:, 0] >= 0.125).all())


def test_gates_restart_with_each_chunk_and_only_fall() -> None:
    begins = torch.tensor([[0, 0, 0, 0, 4, 4], [0, 1, 2, 2, 2, 2]])
    gates = draw_summed_gates(begins, 4, (2, 3), _generator())
    assert gates.shape == (2, 6, 2, 3)
    for sums, first in zip(gates, begins.tolist(), strict=True):
        for token, begin in enumerate(first):
            before = sums[token - 1] if token > begin else torch.zeros(2, 3)
            assert bool((sums[token] < before).all())
            assert bool((sums[token] - before >= -GATE_FLOOR / 4).all())


def test_gates_neither_vanish_nor_wipe_out_a_chunk() -> None:
    begins = (torch.arange(640) // 64 * 64)[None, :]
    ends = draw_summed_gates(begins, 64, (4, 8), _generator())[0, 63::64]
    assert float(ends.min()) > -8 and float(ends.max()) < -0.2


def test_a_gated_batch_has_all_its_tensors() -> None:
    case = {"num_tokens": 50, "num_seqs": 4, "min_len": 0, "chunk_size": 16, "num_heads": 2, "head_dim": 3}
    drawn = draw_gated_chunks(case, _generator(), 5)
    assert {name: tuple(values.shape) for name, values in drawn.items()} == {
        "cu_seqlens": (5, 5),
        "chunk_indices": (5, 7, 2),
        "g": (5, 50, 2, 3),
    }


def test_decayed_products_are_the_double_sum() -> None:
    generator = _generator()
    rows, columns = torch.randn(2, 5, 2, 3, generator=generator, dtype=torch.float64)
    gates = -torch.rand(5, 2, 3, generator=generator, dtype=torch.float64).cumsum(0)
    offsets, begins = torch.tensor([0, 3, 5]), torch.tensor([0, 0, 0, 3, 3])
    products = decayed_products(rows, columns, gates, offsets, 3)
    for t, h, c in [(2, 1, 0), (2, 0, 2), (4, 1, 0), (3, 0, 0)]:
        u = int(begins[t]) + c
        wanted = sum(
            float(rows[t, h, d] * columns[u, h, d]) * math.exp(float(gates[t, h, d] - gates[u, h, d])) for d in range(3)
        )
        assert float(products[t, h, c]) == pytest.approx(wanted)
    assert products[1, :, 2].tolist() == [0.0, 0.0] and products[3, :, 1].tolist() == [0.0, 0.0]
    both = decayed_products(torch.stack([columns, rows]), columns, gates, offsets, 3)
    torch.testing.assert_close(both[1], products)


@pytest.mark.parametrize("chunk_size", [16, 20, 64])
def test_decayed_products_do_not_depend_on_how_a_chunk_is_cut(chunk_size: int) -> None:
    """Against all pairs at once, over sequences of which two end within a chunk and one is empty."""
    generator = _generator()
    offsets = torch.tensor([0, 70, 70, 75, 140])
    begins = chunk_begins(offsets, 140, chunk_size)
    rows = torch.randn(2, 140, 2, 5, generator=generator, dtype=torch.float64)
    columns = torch.randn(140, 2, 5, generator=generator, dtype=torch.float64)
    gates = draw_summed_gates(begins[None], chunk_size, (2, 5), generator)[0].double()
    pairs = torch.einsum("fthd,uhd,tuhd->fthu", rows, columns, torch.exp(gates[:, None] - gates[None]))
    tokens = torch.arange(140)
    within = (begins[:, None] == begins[None]) & (tokens[None] <= tokens[:, None])
    wanted = torch.zeros(2, 140, 2, chunk_size, dtype=torch.float64)
    for t, u in within.nonzero().tolist():
        wanted[:, t, :, u - int(begins[t])] = pairs[:, t, :, u]
    torch.testing.assert_close(decayed_products(rows, columns, gates, offsets, chunk_size), wanted)

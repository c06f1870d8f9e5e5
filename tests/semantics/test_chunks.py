"""Chunks of ragged batches, against loops over sequences."""

from __future__ import annotations

import pytest
import torch

from arena.semantics.chunks import (
    chunk_begins,
    chunk_counts,
    chunk_indices,
    chunk_rows,
    draw_chunks,
    draw_log_decays,
    gather_chunks,
    scatter_chunks,
    sums_within_chunks,
)

OFFSETS = [
    [0, 5, 5, 9, 16],
    [0, 0, 0, 16, 16],
    [0, 1, 2, 3, 16],
]


def _chunks(offsets: list[int], chunk_size: int) -> list[tuple[int, int, list[int]]]:
    """Sequence, number in it and tokens of every chunk, by loops."""
    found = []
    for sequence in range(len(offsets) - 1):
        tokens = list(range(offsets[sequence], offsets[sequence + 1]))
        for number, start in enumerate(range(0, len(tokens), chunk_size)):
            found.append((sequence, number, tokens[start : start + chunk_size]))
    return found


@pytest.mark.parametrize("chunk_size", [1, 4, 16])
@pytest.mark.parametrize("offsets", OFFSETS)
def test_rows_and_indices_list_every_chunk_once(offsets: list[int], chunk_size: int) -> None:
    wanted = _chunks(offsets, chunk_size)
    cu_seqlens = torch.tensor(offsets, dtype=torch.int32)
    rows = chunk_rows(cu_seqlens, chunk_size).tolist()
    assert rows == [tokens + [-1] * (chunk_size - len(tokens)) for _, _, tokens in wanted]
    most = 16 // chunk_size + 4
    pairs = [[sequence, number] for sequence, number, _ in wanted]
    assert chunk_indices(cu_seqlens, chunk_size, most).tolist() == pairs + [[-1, -1]] * (most - len(pairs))
    assert int(chunk_counts(cu_seqlens, chunk_size).sum()) == len(wanted)


@pytest.mark.parametrize("chunk_size", [1, 4, 16])
def test_many_batches_at_once_give_what_each_gives_alone(chunk_size: int) -> None:
    together = torch.tensor(OFFSETS)
    pairs = chunk_indices(together, chunk_size, 21)
    begins = chunk_begins(together, 16, chunk_size)
    for index, offsets in enumerate(OFFSETS):
        assert torch.equal(pairs[index], chunk_indices(torch.tensor(offsets), chunk_size, 21))
        wanted = [tokens[0] for _, _, tokens in _chunks(offsets, chunk_size) for _ in tokens]
        assert begins[index].tolist() == wanted


def test_gathered_chunks_scatter_back() -> None:
    rows = chunk_rows(torch.tensor(OFFSETS[0]), 4)
    values = torch.arange(1.0, 33.0).view(16, 2)
    chunks = gather_chunks(values, rows)
    assert chunks[1].tolist() == [[9.0, 10.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert torch.equal(scatter_chunks(chunks, rows, 16), values)


def test_sums_start_anew_in_every_chunk() -> None:
    values = torch.arange(1.0, 49.0).view(3, 16)
    sums = sums_within_chunks(values, chunk_begins(torch.tensor(OFFSETS), 16, 4))
    for index, offsets in enumerate(OFFSETS):
        for _, _, tokens in _chunks(offsets, 4):
            assert sums[index, tokens].tolist() == values[index, tokens].cumsum(0).tolist()
    columns = sums_within_chunks(values[..., None].expand(3, 16, 5), chunk_begins(torch.tensor(OFFSETS), 16, 4))
    assert torch.equal(columns, sums[..., None].expand(3, 16, 5))


def test_drawn_chunks_have_room_for_all_and_fit_their_offsets() -> None:
    case = {"num_tokens": 40, "num_seqs": 6, "min_len": 0, "chunk_size": 16}
    drawn = draw_chunks(case, torch.Generator().manual_seed(6), 50)
    assert drawn["chunk_indices"].shape == (50, 8, 2)
    for offsets, pairs in zip(drawn["cu_seqlens"], drawn["chunk_indices"], strict=True):
        listed = [[sequence, number] for sequence, number, _ in _chunks(offsets.tolist(), 16)]
        assert pairs.tolist()[: len(listed)] == listed and set(pairs[len(listed) :].flatten().tolist()) <= {-1}


def test_drawn_decays_are_negative_and_of_the_mean_asked_for() -> None:
    decays = draw_log_decays((100, 200), -0.05, torch.Generator().manual_seed(7))
    assert float(decays.max()) < 0
    assert float(decays.mean()) == pytest.approx(-0.05, rel=0.02)

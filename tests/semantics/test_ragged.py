"""Drawn batches: offsets, and requests in prefill, right behind it, and further on."""

from __future__ import annotations

import pytest
import torch

from arena.semantics import ragged
from arena.semantics.ragged import at_once, draw_offsets, draw_requests, similar


def test_drawn_offsets_keep_to_the_least_length() -> None:
    generator = torch.Generator().manual_seed(5)
    offsets = draw_offsets(40, 6, 3, 200, generator)
    assert offsets.shape == (200, 7) and int(offsets.diff().min()) == 3
    assert set(offsets[:, 0].tolist()) == {0} and set(offsets[:, -1].tolist()) == {40}
    assert draw_offsets(40, 1, 0, 2, generator).tolist() == [[0, 40], [0, 40]]


def test_requests_have_slots_of_their_own_and_no_prefill_passes_its_prompt() -> None:
    drawn = draw_requests(7, 12, 30, 9, count=100, generator=torch.Generator().manual_seed(1))
    assert {name: tuple(values.shape) for name, values in drawn.items()} == {
        "idx_mapping": (100, 7),
        "cu_seqlens": (100, 8),
        "num_computed_tokens": (100, 12),
        "prefill_lens": (100, 12),
    }
    assert all(len(set(slots)) == 7 and set(slots) <= set(range(12)) for slots in drawn["idx_mapping"].tolist())
    slots, lengths = drawn["idx_mapping"].long(), drawn["cu_seqlens"].diff()
    assert int(lengths.min()) == 1 and int(lengths.max()) == 9
    left = (drawn["prefill_lens"] - drawn["num_computed_tokens"]).gather(1, slots)
    assert bool(((left <= 0) | (lengths <= left)).all()) and bool((lengths == left).any())


def test_every_stage_of_a_request_is_drawn_often() -> None:
    drawn = draw_requests(1, 4000, 30, 9, count=1, generator=torch.Generator().manual_seed(2))
    left = drawn["prefill_lens"] - drawn["num_computed_tokens"]
    shares = [float(chosen.float().mean()) for chosen in (left > 0, left == 0, left < 0)]
    assert all(abs(share - wanted) < 0.04 for share, wanted in zip(shares, (0.5, 0.25, 0.25), strict=True))
    assert int(drawn["prefill_lens"].min()) == 1 and 0.2 < float((drawn["prefill_lens"] == 30).float().mean()) < 0.35


def test_the_last_slot_often_ends_a_prompt_that_fills_it() -> None:
    drawn = draw_requests(3, 3, 8, 5, count=200, generator=torch.Generator().manual_seed(3))
    lengths = drawn["cu_seqlens"].diff()[drawn["idx_mapping"] == 2]
    computed, prompt = drawn["num_computed_tokens"][:, 2], drawn["prefill_lens"][:, 2]
    ending = (prompt == 8) & (computed + lengths == 8)
    assert 0.4 < float(ending.float().mean()) < 0.7


def test_as_many_items_are_computed_at_a_time_as_fit_and_at_least_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragged, "_MOST_NUMBERS", 100)
    assert [at_once(numbers) for numbers in (0, 7, 50, 1000)] == [100, 14, 2, 1]


def test_items_of_similar_sizes_are_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragged, "_MOST_NUMBERS", 100)
    sizes = [(1, 3), (9, 8), (2, 3), (30, 30), (8, 9), (1, 2), (0, 5)]
    groups = similar(sizes, lambda rows, columns: rows * columns)
    assert sorted(item for group in groups for item in group) == list(range(7))
    # 900 numbers are too many but cannot be divided; (9, 8) and (8, 9) would be 162 together.
    assert groups[:3] == [[3], [1], [4]]
    # Each of (2, 3), (1, 3), (1, 2) and (0, 5) fits, but padding to (2, 5) would more than double 11 numbers.
    assert groups[3:] == [[2, 0, 5], [6]]


def test_padding_at_most_doubles_what_a_group_computes() -> None:
    sizes = [(length,) for length in (1, 2, 3, 5, 8, 40, 100, 90, 0)]
    for group in similar(sizes, lambda length: length):
        lengths = [sizes[item][0] for item in group]
        assert max(lengths) * len(lengths) <= 2 * sum(lengths)

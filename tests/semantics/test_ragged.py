"""Drawn batches: offsets, and requests in prefill, right behind it, and further on."""

from __future__ import annotations

import torch

from arena.semantics.ragged import draw_offsets, draw_requests


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

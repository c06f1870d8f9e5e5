"""The pieces that references share, against definitions that are spelt out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from arena.semantics.packed import AWQ_ORDER, unpack_int4
from arena.semantics.paged import draw_slots, tokens_at
from arena.semantics.philox import normal, random_words, uniform
from arena.semantics.quantize import blockwise, fp8_codes, int8_codes, scales_of
from arena.semantics.ragged import owners, spans
from arena.semantics.routing import Routing, choose_experts, sort_by_expert


def test_philox_gives_the_words_of_the_paper() -> None:
    """Known answers for zero and for the digits of pi are those that the paper's own library ships, for 10 rounds."""
    zero = random_words(0, torch.tensor([0]))
    assert [int(word) for word in zero] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_philox_takes_both_halves_of_the_seed_and_every_offset() -> None:
    seeds = [1, 1 << 32, (1 << 63) - 1]
    words = torch.stack([random_words(seed, torch.arange(64))[0] for seed in seeds])
    assert len(set(words.flatten().tolist())) == words.numel()


def test_uniform_numbers_fill_the_unit_interval_and_normal_ones_have_unit_variance() -> None:
    first, second, *_ = (uniform(word) for word in random_words(7, torch.arange(20_000)))
    assert 0 <= float(first.min()) < 0.001 and 0.999 < float(first.max()) < 1
    numbers, others = normal(first, second)
    assert float(numbers.std()) == pytest.approx(1, abs=0.02)
    assert float((numbers * others).mean()) == pytest.approx(0, abs=0.02)


def test_int4_fields_come_out_in_the_order_asked_for() -> None:
    codes = np.array([3, 14, 0, 15, 9, 1, 8, 5])
    plain = sum(int(code) << (4 * field) for field, code in enumerate(codes))
    awq = sum(int(codes[value]) << (4 * field) for field, value in enumerate(AWQ_ORDER))
    packed = torch.tensor([[plain], [awq]], dtype=torch.int64).to(torch.int32)
    assert unpack_int4(packed[:1])[0].tolist() == codes.tolist()
    assert unpack_int4(packed[1:], AWQ_ORDER)[0].tolist() == codes.tolist()


def test_tokens_of_sequences_follow_their_block_tables_and_are_zero_where_there_is_none() -> None:
    cache = torch.arange(1, 13).view(4, 3, 1)
    blocks = torch.tensor([[2, 0, 3], [1, 1, 1]], dtype=torch.int32)
    positions = torch.tensor([[0, 1, 2, 3, 4], [2, 0, -1, -1, -1]])
    found = tokens_at(cache, blocks, positions)
    assert found.shape == (2, 5, 1)
    assert found.flatten(1).tolist() == [[7, 8, 9, 1, 2], [6, 4, 0, 0, 0]]


@pytest.mark.parametrize(("num_tokens", "padding"), [(2, 0), (3, 1), (20, 3)])
def test_slots_are_distinct_but_for_the_padding(num_tokens: int, padding: int) -> None:
    for slots in draw_slots(23, num_tokens, 10, torch.Generator().manual_seed(4)).tolist():
        used = [slot for slot in slots if slot != -1]
        assert len(slots) == num_tokens and len(set(used)) == len(used) == num_tokens - padding
        assert set(used) <= set(range(23))


def test_spans_and_owners_skip_empty_sequences() -> None:
    cu_seqlens = torch.tensor([0, 2, 2, 5], dtype=torch.int32)
    assert spans(cu_seqlens) == [(0, 2), (2, 2), (2, 5)]
    assert owners(cu_seqlens).tolist() == [0, 0, 2, 2, 2]


def test_codes_are_clamped_and_round_to_even() -> None:
    assert int8_codes(torch.tensor([0.5, 1.5, -300.0, 200.0])).tolist() == [0, 2, -128, 127]
    values = torch.tensor([1e9, -1e9, 1.03])
    assert fp8_codes(values, torch.float8_e4m3fn).float().tolist() == [448, -448, 1]
    assert fp8_codes(values, torch.float8_e4m3fnuz).float().tolist() == [240, -240, 1]
    assert scales_of(torch.tensor([[1.0, -254.0], [0.0, 0.0]]), 127, 1.27).tolist() == pytest.approx([2, 0.01])


def test_a_value_takes_the_scale_of_its_block() -> None:
    scaled = blockwise(torch.ones(3, 5), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 2, 3)
    assert scaled.tolist() == [[1, 1, 1, 2, 2], [1, 1, 1, 2, 2], [3, 3, 3, 4, 4]]


@pytest.mark.parametrize("skew", [1.0, 6.0])
def test_routing_lists_every_choice_once_under_its_expert(skew: float) -> None:
    generator = torch.Generator().manual_seed(3)
    drawn = choose_experts(3, 37, 5, 2, generator, skew)
    chosen = drawn[1]
    assert all(len(set(row)) == 2 for row in chosen.tolist())
    routing = Routing(*(values[1] for values in sort_by_expert(drawn, 5, 16, 160)))
    used = int(routing.num_tokens_post_padded)
    ids = routing.sorted_token_ids.tolist()
    assert sorted(i for i in ids if i < 74) == list(range(74)) and set(ids[used:]) == {74}
    for row, choice in enumerate(ids):
        if choice < 74:
            assert chosen.flatten()[choice] == routing.expert_ids[row // 16]

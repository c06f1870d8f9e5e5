"""Routing of tokens to experts, against what each function promises."""

from __future__ import annotations

import pytest
import torch

from arena.semantics.routing import (
    choices_by_expert,
    choose_experts,
    draw_routings,
    most_blocks,
    sort_by_expert,
    stacked,
    tokens_per_expert,
    with_stale_tail,
)


def _generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("num_active", "num_tokens"), [(2, 9), (5, 9), (12, 6), (12, 40)])
def test_exactly_the_active_experts_are_chosen(num_active: int, num_tokens: int) -> None:
    for seed in range(20):
        chosen = choose_experts(num_tokens, 12, 2, _generator(seed), 4.0, num_active)
        assert all(len(set(row)) == 2 for row in chosen.tolist())
        assert len(set(chosen.flatten().tolist())) == num_active


def test_a_choice_of_no_expert_gets_no_row() -> None:
    chosen = torch.tensor([[2, 0], [-1, 2], [-1, -1]], dtype=torch.int32)
    routing = sort_by_expert(chosen, 3, 4, 16)
    assert routing.sorted_token_ids.tolist() == [1, 6, 6, 6, 0, 3, 6, 6, *[6] * 8]
    assert routing.expert_ids.tolist() == [0, 2, 0, 0]
    assert routing.num_tokens_post_padded.tolist() == [8]


def test_a_stale_tail_leaves_the_rows_in_use_as_they_are() -> None:
    chosen = torch.zeros(5, 1, dtype=torch.int32)
    routing = sort_by_expert(chosen, 1, 4, 4096)
    stale = with_stale_tail(routing, 5, 7, _generator())
    assert stale.sorted_token_ids[:8].tolist() == routing.sorted_token_ids[:8].tolist()
    assert stale.expert_ids[:2].tolist() == [0, 0]
    assert set(stale.sorted_token_ids[8:].tolist()) == set(range(5))
    assert set(stale.expert_ids[2:].tolist()) == set(range(7))


def test_choices_by_expert_give_back_the_choices() -> None:
    chosen = choose_experts(37, 6, 2, _generator(), 3.0, 4)
    routing = with_stale_tail(sort_by_expert(chosen, 6, 16, 176), 74, 6, _generator())
    found = {expert: sorted(choices.tolist()) for expert, choices in choices_by_expert(routing, 74)}
    flat = chosen.flatten()
    assert found == {expert: torch.nonzero(flat == expert)[:, 0].tolist() for expert in set(flat.tolist())}


@pytest.mark.parametrize("counts", [[1, 1, 1], [17, 1, 1], [16, 16], [33], [1, 0, 16]])
def test_there_is_room_for_the_worst_distribution(counts: list[int]) -> None:
    needed = sum(-(-count // 16) for count in counts)
    assert needed <= most_blocks(sum(counts), len(counts), 16) <= min(needed + len(counts), sum(counts))


def test_drawn_routings_list_every_choice_once_and_then_leftovers() -> None:
    case = {"num_tokens": 37, "num_experts": 6, "top_k": 2, "block_m": 16, "num_active": 4}
    drawn = draw_routings(case, _generator(), 5)
    blocks = most_blocks(74, 6, 16)
    assert drawn["sorted_token_ids"].shape == (5, blocks * 16) and drawn["expert_ids"].shape == (5, blocks)
    for ids, used in zip(drawn["sorted_token_ids"], drawn["num_tokens_post_padded"].flatten().tolist(), strict=True):
        assert sorted(choice for choice in ids[:used].tolist() if choice < 74) == [*range(74)]
        assert int(ids[used:].max()) < 74


def test_stacked_routings_have_a_leading_dimension() -> None:
    routing = sort_by_expert(torch.zeros(5, 1, dtype=torch.int32), 1, 4, 8)
    shapes = {name: tuple(values.shape) for name, values in stacked([routing] * 3).items()}
    assert shapes == {"sorted_token_ids": (3, 8), "expert_ids": (3, 2), "num_tokens_post_padded": (3, 1)}


@pytest.mark.parametrize(("total", "num_active"), [(3, 3), (40, 4), (60, 6), (17, 3)])
def test_counts_add_up_and_keep_to_their_bounds(total: int, num_active: int) -> None:
    for seed in range(20):
        counts = tokens_per_expert(total, 6, 10, num_active, _generator(seed))
        assert int(counts.sum()) == total and int(counts.max()) <= 10
        assert int((counts > 0).sum()) == num_active

"""Routing of tokens to experts, against what each function promises."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from arena.semantics import routing
from arena.semantics.routing import (
    Routing,
    choices_by_expert,
    choices_elsewhere,
    choose_experts,
    draw_routings,
    in_parts,
    most_blocks,
    permutations,
    sort_by_expert,
    tokens_per_expert,
    used_blocks,
    with_stale_tail,
)
from arena.task.numerics.operations import count_operations

SETS = 20
CASE = {"num_tokens": 37, "num_experts": 6, "top_k": 2, "block_m": 16, "num_active": 4}


def _generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _one(several: Routing, index: int = 0) -> Routing:
    return Routing(*(values[index] for values in several))


@pytest.mark.parametrize(("num_active", "num_tokens"), [(2, 9), (5, 9), (12, 6), (12, 40)])
def test_exactly_the_active_experts_are_chosen(num_active: int, num_tokens: int) -> None:
    for chosen in choose_experts(SETS, num_tokens, 12, 2, _generator(), 4.0, num_active):
        assert all(len(set(row)) == 2 for row in chosen.tolist())
        assert len(set(chosen.flatten().tolist())) == num_active


def test_some_experts_are_popular_and_in_every_set_others() -> None:
    chosen = choose_experts(SETS, 400, 8, 1, _generator(), 6.0)
    loads = torch.stack([torch.bincount(ids.flatten(), minlength=8) for ids in chosen])
    assert bool((loads.max(1).values > 2 * 400 / 8).all())
    assert len(set(loads.argmax(1).tolist())) > 3


def test_permutations_are_permutations_and_differ() -> None:
    drawn = permutations(SETS, 50, _generator())
    assert all(sorted(order) == [*range(50)] for order in drawn.tolist())
    assert len({tuple(order) for order in drawn.tolist()}) == SETS


def test_a_choice_of_no_expert_gets_no_row() -> None:
    chosen = torch.tensor([[[2, 0], [-1, 2], [-1, -1]], [[-1, -1], [-1, -1], [-1, -1]]], dtype=torch.int32)
    routing = sort_by_expert(chosen, 3, 4, 16)
    assert routing.sorted_token_ids.tolist() == [[1, 6, 6, 6, 0, 3, 6, 6, *[6] * 8], [6] * 16]
    assert routing.expert_ids.tolist() == [[0, 2, 0, 0], [0] * 4]
    assert routing.num_tokens_post_padded.tolist() == [[8], [0]]


def test_sets_are_sorted_each_for_itself() -> None:
    chosen = choose_experts(SETS, 37, 6, 2, _generator(), 3.0)
    together = sort_by_expert(chosen, 6, 16, 176)
    for index in range(SETS):
        alone = sort_by_expert(chosen[index : index + 1], 6, 16, 176)
        assert all(torch.equal(a[0], b[index]) for a, b in zip(alone, together, strict=True))


def test_a_stale_tail_leaves_the_rows_in_use_as_they_are() -> None:
    routing = sort_by_expert(torch.zeros(2, 5, 1, dtype=torch.int32), 1, 4, 4096)
    for index in range(2):
        stale = _one(with_stale_tail(routing, 5, 7, _generator()), index)
        assert stale.sorted_token_ids[:8].tolist() == routing.sorted_token_ids[index, :8].tolist()
        assert stale.expert_ids[:2].tolist() == [0, 0]
        assert set(stale.sorted_token_ids[8:].tolist()) == set(range(5))
        assert set(stale.expert_ids[2:].tolist()) == set(range(7))


def test_choices_by_expert_give_back_the_choices() -> None:
    chosen = choose_experts(3, 37, 6, 2, _generator(), 3.0, 4)
    routing = _one(with_stale_tail(sort_by_expert(chosen, 6, 16, 176), 74, 6, _generator()), 2)
    found = {expert: sorted(choices.tolist()) for expert, choices in choices_by_expert(routing, 74)}
    flat = chosen[2].flatten()
    assert found == {expert: torch.nonzero(flat == expert)[:, 0].tolist() for expert in set(flat.tolist())}


def test_used_blocks_hold_the_choices_of_each_routing_and_expert() -> None:
    routings = Routing(**draw_routings(CASE, _generator(), 3))
    blocks = used_blocks(routings, 74)
    assert blocks.choices.shape == (len(blocks.experts), 16) and len(blocks.routings) == len(blocks.experts)
    for index in range(3):
        one = Routing(*(values[index] for values in routings))
        for expert, choices in choices_by_expert(one, 74):
            found = blocks.choices[(blocks.routings == index) & (blocks.experts == expert)]
            assert found[found >= 0].tolist() == choices.tolist()
        assert sorted(blocks.choices[blocks.routings == index].clamp(min=-1).flatten().tolist())[-74:] == [*range(74)]


@pytest.mark.parametrize("counts", [[1, 1, 1], [17, 1, 1], [16, 16], [33], [1, 0, 16]])
def test_there_is_room_for_the_worst_distribution(counts: list[int]) -> None:
    needed = sum(-(-count // 16) for count in counts)
    assert needed <= most_blocks(sum(counts), len(counts), 16) <= min(needed + len(counts), sum(counts))


def test_drawn_routings_list_every_choice_once_and_then_leftovers() -> None:
    drawn = draw_routings(CASE, _generator(), 5)
    blocks = most_blocks(74, 6, 16)
    assert drawn["sorted_token_ids"].shape == (5, blocks * 16) and drawn["expert_ids"].shape == (5, blocks)
    for ids, used in zip(drawn["sorted_token_ids"], drawn["num_tokens_post_padded"].flatten().tolist(), strict=True):
        assert sorted(choice for choice in ids[:used].tolist() if choice < 74) == [*range(74)]
        assert int(ids[used:].max()) < 74


def test_choices_elsewhere_are_as_many_as_asked_for() -> None:
    chosen = choose_experts(SETS, 9, 5, 3, _generator())
    left = choices_elsewhere(chosen, 7, _generator())
    assert ((left == -1).flatten(1).sum(1) == 7).all()
    assert torch.equal(torch.where(left == -1, chosen, left), chosen)


@pytest.mark.parametrize(("total", "num_active"), [(3, 3), (40, 4), (60, 6), (17, 3)])
def test_counts_add_up_and_keep_to_their_bounds(total: int, num_active: int) -> None:
    for counts in tokens_per_expert(SETS, total, 6, 10, num_active, _generator()):
        assert int(counts.sum()) == total and int(counts.max()) <= 10
        assert int((counts > 0).sum()) == num_active


def test_parts_are_as_large_as_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "_MOST_KEYS", 30)
    asked = []

    def draw(sets: int) -> dict[str, torch.Tensor]:
        asked.append(sets)
        return {"x": torch.zeros(sets, 4)}

    assert in_parts(7, 10, draw)["x"].shape == (7, 4)
    assert asked == [3, 3, 1]
    asked.clear()
    in_parts(2, 1000, draw)
    assert asked == [1, 1]


def test_a_thousand_routings_take_no_more_operations_than_two() -> None:
    """They are drawn for every round of a timing: one by one that took half a second each time on an H200."""
    counts = [count_operations(partial(draw_routings, CASE, _generator(), sets)) for sets in (2, 1000)]
    assert counts[0] == counts[1]


def test_a_large_batch_repeats_choices_and_still_uses_every_active_expert() -> None:
    tokens, experts, top_k, active = 9000, 40, 3, 17
    chosen = choose_experts(2, tokens, experts, top_k, _generator(), 3.0, active)
    assert chosen.shape == (2, tokens, top_k) and chosen.dtype == torch.int32
    for one in chosen:
        assert one.unique().numel() == active
        assert (one.sort(-1).values.diff(dim=-1) > 0).all(), "distinct experts of each token"
        assert not torch.equal(one[4096:8192], one[:4096]), "in an order of its own"
    assert not torch.equal(chosen[0], chosen[1])

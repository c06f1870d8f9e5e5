"""Attention and its parts against loops over single scores; batches against what they promise."""

from __future__ import annotations

import math

import pytest
import torch

from arena.semantics.attention import Rule, attend, attend_in_parts, block_tables, mixed_batch, scores_of
from arena.semantics.ragged import spans

BATCH = {
    "num_seqs": 6,
    "num_decodes": 2,
    "num_tokens": 30,
    "min_context": 3,
    "max_context": 9,
    "block_size": 4,
    "num_blocks": 24,
    "max_blocks": 10,
}


def drawn(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three queries at the end of eleven keys; four heads on two key heads."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(3, 4, 5, generator=generator, dtype=torch.float64)
    key = torch.randn(11, 2, 5, generator=generator, dtype=torch.float64)
    value = torch.randn(11, 2, 7, generator=generator, dtype=torch.float64)
    return query, key, value, torch.tensor([8, 9, 10])


def spelt_out(row: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, seen: range) -> torch.Tensor:
    weights = [math.exp(0.3 * float(row @ keys[place])) for place in seen]
    mixed = torch.stack([weight * values[place] for weight, place in zip(weights, seen, strict=True)]).sum(0)
    return mixed / sum(weights)


@pytest.mark.parametrize(("causal", "window"), [(True, 0), (True, 4), (False, 0)])
def test_attention_is_a_weighted_mean_of_the_values_a_query_sees(causal: bool, window: int) -> None:
    query, key, value, positions = drawn()
    out = attend(query, key, value, positions, Rule(0.3, causal=causal, window=window))
    for row, position in enumerate(positions.tolist()):
        seen = range(position - window + 1 if window else 0, position + 1 if causal else 11)
        for head in range(4):
            expected = spelt_out(query[row, head], key[:, head // 2], value[:, head // 2], seen)
            torch.testing.assert_close(out[row, head], expected)


def test_a_softcap_bounds_scores_and_alibi_falls_with_the_distance() -> None:
    query, key, _, positions = drawn()
    plain = scores_of(query, key, positions, Rule(0.3, causal=False))
    capped = scores_of(query, key, positions, Rule(0.3, causal=False, softcap=0.5))
    torch.testing.assert_close(capped, 0.5 * torch.tanh(plain / 0.5))
    slopes = torch.tensor([1.0, 0.5, 0.25, 0.125], dtype=torch.float64)
    tilted = scores_of(query, key, positions, Rule(0.3, causal=False, slopes=slopes))
    assert float(tilted[1, 2, 4] - plain[1, 2, 4]) == pytest.approx(0.5 * (4 - 10))


def test_a_query_that_sees_nothing_gets_zeros() -> None:
    query, key, value, _ = drawn()
    out = attend(query, key, value, torch.tensor([-2, -1, 0]), Rule(0.3))
    assert out[:2].eq(0).all()
    torch.testing.assert_close(out[2], value[0].repeat_interleave(2, 0))


def test_parts_add_up_to_the_whole_and_parts_without_keys_are_empty() -> None:
    query, key, value, positions = drawn()
    rule = Rule(0.3, window=6)
    found = attend_in_parts(scores_of(query, key, positions, rule), value, parts=5, part_length=3)
    weights = torch.exp(found.maxima)[..., None]
    whole = (found.acc * weights).sum(2) / (found.sums[..., None] * weights).sum(2)
    torch.testing.assert_close(whole, attend(query, key, value, positions, rule))
    # Keys end at 11, and the last query's window starts at 5: parts 0 and 4 hold nothing for it.
    assert found.sums[2, 0].eq(0).tolist() == [True, False, False, False, True]
    assert found.maxima[2, 0, 0] == -torch.inf and found.acc[2, 0, 0].eq(0).all()


def test_a_mixed_batch_has_its_decodes_its_tokens_and_blocks_of_its_own() -> None:
    made = mixed_batch(BATCH, torch.Generator().manual_seed(3), 40)
    orders = set()
    for cu_seqlens, seq_lens, table in zip(*(made[n] for n in ("cu_seqlens", "seq_lens", "block_table")), strict=True):
        lengths = [end - begin for begin, end in spans(cu_seqlens)]
        assert sum(lengths) == 30 and lengths.count(1) >= 2 and min(lengths) >= 1
        assert all(3 <= total - new <= 9 for total, new in zip(seq_lens.tolist(), lengths, strict=True))
        used = torch.cat([row[: -(-total // 4)] for row, total in zip(table, seq_lens.tolist(), strict=True)])
        assert len(set(used.tolist())) == used.numel()
        assert set(table.flatten().tolist()) <= set(range(24))
        orders.add(tuple(length == 1 for length in lengths))
    assert len(orders) > 1


def test_a_batch_with_fewer_tokens_than_sequences_has_empty_ones() -> None:
    made = mixed_batch({**BATCH, "num_tokens": 4}, torch.Generator().manual_seed(5), 20)
    lengths = made["cu_seqlens"].diff()
    assert lengths.sum(-1).eq(4).all() and lengths.eq(0).any(-1).all()


def test_a_batch_of_decodes_alone_has_one_token_each() -> None:
    made = mixed_batch({**BATCH, "num_decodes": 6, "num_tokens": 6}, torch.Generator().manual_seed(5), 2)
    assert made["cu_seqlens"].tolist() == [list(range(7))] * 2


def test_block_tables_use_every_block_where_there_are_no_more_than_needed() -> None:
    tables = block_tables(torch.tensor([[9, 15], [13, 12]]), {**BATCH, "num_blocks": 7}, torch.Generator())
    first, second = tables
    assert sorted([*first[0, :3].tolist(), *first[1, :4].tolist()]) == list(range(7))
    assert sorted([*second[0, :4].tolist(), *second[1, :3].tolist()]) == list(range(7))

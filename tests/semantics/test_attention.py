"""Attention and its parts against loops over single scores; batches against what they promise."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from arena.semantics import ragged
from arena.semantics.attention import Rule, Sequences, attend, attend_in_parts, block_tables, mixed_batch, scores_of
from arena.semantics.chunks import gather_chunks
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


PLACES = torch.arange(11)[None]


def drawn(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Three queries at the end of eleven keys; four heads on two key heads."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(3, 4, 5, generator=generator, dtype=torch.float64)
    key = torch.randn(11, 2, 5, generator=generator, dtype=torch.float64)
    value = torch.randn(11, 2, 7, generator=generator, dtype=torch.float64)
    return query, key, value, torch.tensor([8, 9, 10])


def batch(queries: list[int], lengths: list[int], seed: int = 0) -> tuple[Sequences, list[torch.Tensor]]:
    """Ragged sequences with as many queries and keys, and the keys of each; infinities lie beside the keys."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(sum(queries), 4, 5, generator=generator, dtype=torch.float64)
    keys = [torch.randn(length, 2, 5, generator=generator, dtype=torch.float64) for length in lengths]
    starts = torch.tensor([0, *itertools.accumulate(length + 1 for length in lengths)])
    stored = torch.cat([torch.cat([key, torch.full((1, 2, 5), torch.inf, dtype=torch.float64)]) for key in keys])

    def read(seqs: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = gather_chunks(stored, torch.where(positions < 0, -1, starts[seqs, None] + positions))
        return found, 2 * found

    offsets = torch.tensor([0, *itertools.accumulate(queries)])
    return Sequences(query, offsets, torch.tensor(lengths), read, 2, 5), keys


def spelt_out(row: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, seen: range) -> torch.Tensor:
    if not seen:
        return torch.zeros_like(values[0])
    weights = [math.exp(0.3 * float(row @ keys[place])) for place in seen]
    mixed = torch.stack([weight * values[place] for weight, place in zip(weights, seen, strict=True)]).sum(0)
    return mixed / sum(weights)


@pytest.mark.parametrize(("causal", "window"), [(True, 0), (True, 4), (False, 0)])
@pytest.mark.parametrize("memory", [1 << 27, 200])
def test_attention_is_a_weighted_mean_of_the_values_a_query_sees(
    causal: bool, window: int, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ragged, "_MOST_NUMBERS", memory)
    queries, lengths = [3, 0, 1, 5, 2], [11, 4, 7, 6, 1]
    sequences, keys = batch(queries, lengths)
    out = attend(sequences, Rule(0.3, causal=causal, window=window))
    token = 0
    for count, length, key in zip(queries, lengths, keys, strict=True):
        for position in range(length - count, length):
            seen = range(max(0, position - window + 1) if window else 0, max(0, position + 1) if causal else length)
            for head in range(4):
                expected = spelt_out(sequences.query[token, head], key[:, head // 2], 2 * key[:, head // 2], seen)
                torch.testing.assert_close(out[token, head], expected)
            token += 1


def test_a_softcap_bounds_scores_and_alibi_falls_with_the_distance() -> None:
    query, key, _, positions = drawn()

    def scores(rule: Rule) -> torch.Tensor:
        return scores_of(query[None], key[None], positions[None], PLACES, rule)[0]

    plain = scores(Rule(0.3, causal=False))
    capped = scores(Rule(0.3, causal=False, softcap=0.5))
    torch.testing.assert_close(capped, 0.5 * torch.tanh(plain / 0.5))
    slopes = torch.tensor([1.0, 0.5, 0.25, 0.125], dtype=torch.float64)
    tilted = scores(Rule(0.3, causal=False, slopes=slopes))
    assert float(tilted[1, 2, 4] - plain[1, 2, 4]) == pytest.approx(0.5 * (4 - 10))


def test_no_query_sees_a_place_without_a_key() -> None:
    query, key, _, positions = drawn()
    places = PLACES.masked_fill(PLACES == 2, -1)
    scores = scores_of(query[None], key[None], positions[None], places, Rule(0.3, causal=False))
    assert (scores == -torch.inf).any(1).nonzero().tolist() == [[0, row, 2] for row in range(3)]


@pytest.mark.parametrize("memory", [1 << 27, 200])
def test_parts_add_up_to_the_whole_and_parts_without_keys_are_empty(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ragged, "_MOST_NUMBERS", memory)
    sequences, _ = batch([3, 0, 1], [11, 4, 9])
    rule = Rule(0.3, window=6)
    found = attend_in_parts(sequences, rule, parts=5, part_lengths=torch.tensor([3, 1, 2]))
    weights = torch.exp(found.maxima)[..., None]
    whole = (found.acc * weights).sum(2) / (found.sums[..., None] * weights).sum(2)
    torch.testing.assert_close(whole, attend(sequences, rule))
    # Keys end at 11, and the third query's window starts at 5: parts 0 and 4 hold nothing for it.
    assert found.sums[2, 0].eq(0).tolist() == [True, False, False, False, True]
    assert found.maxima[2, 0, 0] == -torch.inf and found.acc[2, 0, 0].eq(0).all()
    # Of 9 keys in parts of 2, the window has those from 3 on.
    assert found.sums[3, 0].eq(0).tolist() == [True, False, False, False, False]


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

"""Attention of ragged sequences, whole or in parts, and batches that mix prefills and decodes over a paged cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from arena.semantics.chunks import gather_chunks
from arena.semantics.ragged import at_once, draw_offsets, similar, spans

if TYPE_CHECKING:
    import torch

_COPIES = 4
"""of all scores, which lie in memory at a time"""


@dataclass(frozen=True)
class Rule:
    """What makes a score of query · key, and which keys a query sees.

    softcap: c of c * tanh(score / c), none at 0. window: keys that a query sees at most, its own position the last of
    them; all at 0. slopes: (num_heads,), ALiBi (Press et al., 2022): slope * (key position - query position) is added.
    """

    sm_scale: float
    causal: bool = True
    softcap: float = 0.0
    window: int = 0
    slopes: torch.Tensor | None = None


class Partial(NamedTuple):
    """Attention over one part of the keys before it is normalised; a part without keys has 0, -inf and 0.

    acc: (num_tokens, num_heads, parts, value_dim), sums of values times exp(score - maximum). maxima, sums:
    (num_tokens, num_heads, parts), the greatest score and the sum of exp(score - maximum).
    """

    acc: torch.Tensor
    maxima: torch.Tensor
    sums: torch.Tensor


class Sequences(NamedTuple):
    """Ragged queries, and where the keys of their sequences lie.

    query: (num_tokens, num_heads, head_dim). cu_seqlens: (num_seqs + 1,), of the queries. lengths: (num_seqs,), keys of
    each sequence; the last query stands at the last key. read: keys and values, (seqs, keys, num_kv_heads, head_dim or
    value_dim), of sequences (seqs,) at positions (seqs, keys), zero where the position is -1.
    """

    query: torch.Tensor
    cu_seqlens: torch.Tensor
    lengths: torch.Tensor
    read: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
    num_kv_heads: int
    value_dim: int


class Queries(NamedTuple):
    """Queries of some sequences that are computed together, padded to the longest.

    sequences: (seqs,). tokens: (seqs, queries), their rows, -1 past the last. positions: (seqs, queries), within the
    keys. most_keys: keys of the longest sequence.
    """

    sequences: torch.Tensor
    tokens: torch.Tensor
    positions: torch.Tensor
    most_keys: int


def scores_of(
    query: torch.Tensor, key: torch.Tensor, positions: torch.Tensor, key_positions: torch.Tensor, rule: Rule
) -> torch.Tensor:
    """(seqs, num_heads, queries, keys), -inf where a query does not see a key.

    query: (seqs, queries, num_heads, head_dim); key: (seqs, keys, num_kv_heads, head_dim); positions: (seqs, queries);
    key_positions: (seqs, keys), -1 where there is no key.
    """
    import torch

    grouped = torch.unflatten(query, 2, (key.shape[2], -1))
    scores = torch.einsum("sqhgd,skhd->shgqk", grouped, key).flatten(1, 2) * rule.sm_scale
    if rule.softcap:
        scores = rule.softcap * torch.tanh(scores / rule.softcap)
    behind = (positions[:, :, None] - key_positions[:, None])[:, None]
    if rule.slopes is not None:
        scores = scores - rule.slopes[:, None, None] * behind
    hidden = (key_positions < 0)[:, None, None]
    if rule.causal:
        hidden = hidden | (behind < 0)
    if rule.window:
        hidden = hidden | (behind >= rule.window)
    return scores.masked_fill(hidden, -torch.inf)


def attend(sequences: Sequences, rule: Rule) -> torch.Tensor:
    """Apply the softmax of the scores to the values: (num_tokens, num_heads, value_dim).

    A query that sees no key gets 0.
    """
    import torch

    out = sequences.query.new_zeros(*sequences.query.shape[:2], sequences.value_dim)
    for some in _query_groups(sequences, sequences.lengths):
        steps = torch.arange(some.most_keys, device=out.device)
        places = torch.where(steps < sequences.lengths[some.sequences, None], steps, -1)
        keys, values = sequences.read(some.sequences, places)
        query = gather_chunks(sequences.query, some.tokens)
        scores = scores_of(query, keys, some.positions, places, rule)
        sees_nothing = scores.amax(dim=-1, keepdim=True) == -torch.inf
        weights = torch.softmax(scores, dim=-1).masked_fill(sees_nothing, 0.0)
        grouped = torch.unflatten(weights, 1, (sequences.num_kv_heads, -1))
        attended = torch.einsum("shgqk,skhd->sqhgd", grouped, values).flatten(2, 3)
        out[some.tokens[some.tokens >= 0]] = attended[some.tokens >= 0]
    return out


def attend_in_parts(sequences: Sequences, rule: Rule, parts: int, part_lengths: torch.Tensor) -> Partial:
    """Attend to `parts` parts of the keys, each on its own; past the last key there are none.

    part_lengths: (num_seqs,), keys of each part of a sequence; part p begins at p times as many.
    """
    import torch

    query, lengths = sequences.query, sequences.lengths
    acc = query.new_zeros(*query.shape[:2], parts, sequences.value_dim)
    maxima, sums = (query.new_zeros(*query.shape[:2], parts) for _ in range(2))
    for some in _query_groups(sequences, part_lengths * parts):
        steps = torch.arange(some.most_keys // parts, device=query.device)
        length = part_lengths[some.sequences, None, None]
        places = torch.arange(parts, device=query.device)[:, None] * length + steps
        missing = (steps >= length) | (places >= lengths[some.sequences, None, None])
        places = places.masked_fill(missing, -1).flatten(1)
        keys, values = sequences.read(some.sequences, places)
        scores = scores_of(gather_chunks(query, some.tokens), keys, some.positions, places, rule)
        scores = torch.unflatten(scores, -1, (parts, -1))
        highest = scores.amax(dim=-1)
        weights = torch.exp(scores - highest.masked_fill(highest == -torch.inf, 0.0)[..., None])
        grouped = torch.unflatten(weights, 1, (sequences.num_kv_heads, -1))
        summed = torch.einsum("shgqpk,spkhd->sqhgpd", grouped, torch.unflatten(values, 1, (parts, -1))).flatten(2, 3)
        present = some.tokens >= 0
        tokens = some.tokens[present]
        acc[tokens] = summed[present]
        maxima[tokens] = highest.transpose(1, 2)[present]
        sums[tokens] = weights.sum(dim=-1).transpose(1, 2)[present]
    return Partial(acc, maxima, sums)


def _query_groups(sequences: Sequences, most_keys: torch.Tensor) -> Iterator[Queries]:
    """Cut queries of long sequences, and group those that have similar numbers of queries and keys.

    most_keys: (num_seqs,), keys of each sequence with padding inside it.
    """
    import torch

    num_heads, head_dim = sequences.query.shape[1:]
    of_key = 2 * sequences.num_kv_heads * (head_dim + sequences.value_dim)
    pieces = []
    sizes = zip(spans(sequences.cu_seqlens), sequences.lengths.tolist(), most_keys.tolist(), strict=True)
    for sequence, ((begin, end), length, keys) in enumerate(sizes):
        rows = at_once(_COPIES * num_heads * keys)
        firsts = range(begin, end, rows)
        pieces += [(sequence, first, min(rows, end - first), length - (end - first), keys) for first in firsts]
    for group in similar(
        [(rows, keys) for _, _, rows, _, keys in pieces],
        lambda rows, keys: keys * (of_key + _COPIES * num_heads * rows),
    ):
        chosen = torch.tensor([pieces[item] for item in group], device=most_keys.device)
        numbers, begins, counts, positions, widths = chosen.unbind(dim=1)
        steps = torch.arange(int(counts.max()), device=chosen.device)
        tokens = torch.where(steps < counts[:, None], begins[:, None] + steps, -1)
        yield Queries(numbers, tokens, positions[:, None] + steps, int(widths.max()))


def mixed_batch(case: Mapping[str, int], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """`cu_seqlens`, `seq_lens` and `block_table` of prefills and decodes in random order, `count` times.

    Of num_seqs sequences num_decodes have one new token; the others share what is left of num_tokens, each at least one
    where there are enough. Before them lie min_context to max_context tokens. See `block_tables` for the blocks.
    """
    import torch
    from torch.nn.functional import pad

    device = generator.device
    decodes, others = case["num_decodes"], case["num_seqs"] - case["num_decodes"]
    rest = case["num_tokens"] - decodes
    prefills = draw_offsets(rest, max(others, 1), int(rest >= max(others, 1)), count, generator).diff()[:, :others]
    lengths = torch.cat([prefills.new_ones(count, decodes), prefills], dim=-1)
    order = torch.rand(lengths.shape, generator=generator, device=device).argsort(dim=-1)
    lengths = lengths.gather(1, order)
    least_context, most_context = case["min_context"], case["max_context"]
    context = torch.randint(least_context, most_context + 1, lengths.shape, generator=generator, device=device)
    return {
        "cu_seqlens": pad(lengths.cumsum(dim=-1), (1, 0)),
        "seq_lens": context + lengths,
        "block_table": block_tables(context + lengths, case, generator),
    }


def block_tables(lengths: torch.Tensor, case: Mapping[str, int], generator: torch.Generator) -> torch.Tensor:
    """(count, num_seqs, max_blocks): distinct blocks for what sequences use, any blocks past their ends.

    lengths: (count, num_seqs). Uses block_size, num_blocks and max_blocks of the case.
    """
    import torch

    used = (lengths + case["block_size"] - 1) // case["block_size"]
    entries = torch.arange(case["max_blocks"], device=lengths.device)
    places = (used.cumsum(dim=-1) - used)[..., None] + entries
    places = torch.where(entries < used[..., None], places, entries % case["num_blocks"])
    shape = (lengths.shape[0], case["num_blocks"])
    blocks = torch.rand(shape, generator=generator, device=lengths.device).argsort(dim=-1)
    return blocks.gather(1, places.flatten(1)).view_as(places)

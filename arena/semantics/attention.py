"""Attention of one sequence, whole or in parts, and batches that mix prefills and decodes over a paged cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from arena.semantics.ragged import draw_offsets

if TYPE_CHECKING:
    import torch

_MOST_SCORES = 1 << 26


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

    acc: (queries, num_heads, parts, value_dim), sums of values times exp(score - maximum). maxima, sums:
    (queries, num_heads, parts), the greatest score and the sum of exp(score - maximum).
    """

    acc: torch.Tensor
    maxima: torch.Tensor
    sums: torch.Tensor


def scores_of(query: torch.Tensor, key: torch.Tensor, positions: torch.Tensor, rule: Rule) -> torch.Tensor:
    """(num_heads, queries, keys), -inf where a query does not see a key.

    query: (queries, num_heads, head_dim); key: (keys, num_kv_heads, head_dim), from position 0 on; positions:
    (queries,), those of the queries.
    """
    import torch

    queries, num_heads, head_dim = query.shape
    num_kv_heads = key.shape[1]
    grouped = query.view(queries, num_kv_heads, num_heads // num_kv_heads, head_dim)
    scores = torch.einsum("qhgd,khd->hgqk", grouped, key).flatten(0, 1) * rule.sm_scale
    if rule.softcap:
        scores = rule.softcap * torch.tanh(scores / rule.softcap)
    behind = positions[:, None] - torch.arange(key.shape[0], device=key.device)
    if rule.slopes is not None:
        scores = scores - rule.slopes[:, None, None] * behind
    hidden = torch.zeros_like(behind, dtype=torch.bool)
    if rule.causal:
        hidden |= behind < 0
    if rule.window:
        hidden |= behind >= rule.window
    return scores.masked_fill(hidden, -torch.inf)


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, positions: torch.Tensor, rule: Rule
) -> torch.Tensor:
    """(queries, num_heads, value_dim): softmax of the scores, applied to the values; 0 where a query sees nothing."""
    import torch

    num_kv_heads = value.shape[1]
    rows = max(1, _MOST_SCORES // max(1, query.shape[1] * key.shape[0]))
    parts = []
    for start in range(0, max(1, query.shape[0]), rows):
        some = slice(start, start + rows)
        weights = torch.softmax(scores_of(query[some], key, positions[some], rule), dim=-1).nan_to_num(0.0)
        grouped = weights.view(num_kv_heads, -1, *weights.shape[1:])
        part = torch.einsum("hgqk,khd->qhgd", grouped, value)
        parts.append(part.flatten(1, 2))
    return torch.cat(parts)


def attend_in_parts(scores: torch.Tensor, value: torch.Tensor, parts: int, part_length: int) -> Partial:
    """Part p has the keys from p * part_length up to the next part's; past the last key there are none.

    scores: (num_heads, queries, keys); value: (keys, num_kv_heads, value_dim).
    """
    import torch
    from torch.nn.functional import pad

    missing = parts * part_length - scores.shape[-1]
    cut = pad(scores, (0, missing), value=-torch.inf).reshape(*scores.shape[:2], parts, part_length)
    values = pad(value, (0, 0, 0, 0, 0, missing)).view(parts, part_length, *value.shape[1:])
    maxima = cut.amax(dim=-1)
    weights = torch.exp(cut - maxima.masked_fill(maxima == -torch.inf, 0.0)[..., None])
    grouped = weights.view(value.shape[1], -1, *weights.shape[1:])
    acc = torch.einsum("hgqpk,pkhd->qhgpd", grouped, values).flatten(1, 2)
    return Partial(acc, maxima.transpose(0, 1), weights.sum(dim=-1).transpose(0, 1))


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

"""Ragged batches: sequences of different lengths one after the other, told apart by `cu_seqlens`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_MOST_NUMBERS = 3 << 26
"""that a reference keeps at a time: 1.5 GiB in float64; copies that operators make take up to a third more"""
_MOST_PADDING = 2
"""Numbers of a padded group, by those of its items alone, at most."""


def at_once(numbers: int) -> int:
    """Return how many items a reference computes at a time, so that intermediate tensors fit into memory.

    Args:
        numbers: Numbers of all intermediate tensors for one item, such as a chunk or a sequence.

    Returns:
        At least 1.
    """
    return max(1, _MOST_NUMBERS // max(1, numbers))


def similar(sizes: Sequence[tuple[int, ...]], numbers: Callable[..., int]) -> list[list[int]]:
    """Group items that are computed together, padded to the greatest sizes of their group.

    Args:
        sizes: Sizes of each item, such as its queries and its keys.
        numbers: Numbers of all intermediate tensors for one item of given sizes, ascending in each of them.

    Returns:
        Indices into `sizes` by group, each once. A group fits into memory unless it has one item, and padding at most
        doubles its numbers.
    """
    groups: list[list[int]] = []
    greatest: tuple[int, ...] = ()
    alone = 0
    for item in sorted(range(len(sizes)), key=lambda item: (numbers(*sizes[item]), sizes[item]), reverse=True):
        size, own = sizes[item], numbers(*sizes[item])
        if groups:
            padded = tuple(map(max, greatest, size))
            total = numbers(*padded) * (len(groups[-1]) + 1)
            if total <= min(_MOST_NUMBERS, _MOST_PADDING * (alone + own)):
                groups[-1].append(item)
                greatest, alone = padded, alone + own
                continue
        groups.append([item])
        greatest, alone = size, own
    return groups


def spans(cu_seqlens: torch.Tensor) -> list[tuple[int, int]]:
    """(begin, end) of every sequence; cu_seqlens: (num_seqs + 1,), ascending, from 0."""
    return list(itertools.pairwise(cu_seqlens.tolist()))


def owners(cu_seqlens: torch.Tensor) -> torch.Tensor:
    """The sequence of every token: (num_tokens,), int64."""
    import torch

    lengths = cu_seqlens.diff().long()
    return torch.repeat_interleave(torch.arange(lengths.numel(), device=lengths.device), lengths)


def draw_offsets(total: int, parts: int, least: int, count: int, generator: torch.Generator) -> torch.Tensor:
    """`total` cut at random into parts of `least` or more: (count, parts + 1), int64, as the fill `offsets` has it."""
    import torch

    spare = total - parts * least
    cuts = torch.randint(0, spare + 1, (count, parts - 1), generator=generator, device=generator.device)
    edges = [cuts.new_zeros(count, 1), cuts.sort(dim=-1).values, cuts.new_full((count, 1), spare)]
    return torch.cat(edges, dim=-1) + least * torch.arange(parts + 1, device=generator.device)


def draw_requests(
    num_reqs: int, num_slots: int, max_len: int, max_query: int, *, count: int, generator: torch.Generator
) -> dict[str, torch.Tensor]:
    """`count` batches for `make_inputs`: of the slots, about half are in prefill, and a quarter is right behind it.

    The last quarter has produced tokens since. In every other batch the last slot is at the end of a prompt that fills
    it, so that what reads on leaves the tensor. idx_mapping: (count, num_reqs), distinct slots; num_computed_tokens,
    prefill_lens: (count, num_slots), prompts of 1 … max_len tokens, one in four of max_len; cu_seqlens: (count,
    num_reqs + 1), requests of 1 … max_query new tokens, in prefill no more than are left. All int32.
    """
    import torch

    def draw(low: torch.Tensor | int, high: torch.Tensor | int, size: int) -> torch.Tensor:
        part = torch.rand(count, size, generator=generator, device=generator.device, dtype=torch.float64)
        return (low + part * (high - low + 1)).long()

    keys = torch.rand(count, num_slots, generator=generator, device=generator.device, dtype=torch.float64)
    slots = keys.argsort(dim=-1)[:, :num_reqs]
    ending = (draw(0, 1, 1) == 1) & (torch.arange(num_slots, device=slots.device) == num_slots - 1)
    prefill_lens = torch.where(ending | (draw(0, 3, num_slots) == 0), max_len, draw(1, max_len, num_slots))
    stage = draw(0, 3, num_slots).masked_fill(ending, 0)
    in_prefill, produced = stage < 2, torch.where(stage == 3, draw(1, 100, num_slots), 0)
    computed = torch.where(in_prefill, draw(0, prefill_lens - 1, num_slots), prefill_lens + produced)
    computed = torch.where(ending, max_len - draw(1, min(max_query, max_len), num_slots), computed)
    left = torch.where(in_prefill, prefill_lens - computed, max_query).gather(1, slots)
    lengths = torch.minimum(draw(1, max_query, num_reqs), left).where(~ending.gather(1, slots), left)
    drawn = {
        "idx_mapping": slots,
        "cu_seqlens": torch.nn.functional.pad(lengths.cumsum(dim=-1), (1, 0)),
        "num_computed_tokens": computed,
        "prefill_lens": prefill_lens,
    }
    return {name: values.int() for name, values in drawn.items()}

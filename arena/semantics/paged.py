"""Paged caches (Kwon et al., PagedAttention, 2023): a sequence's tokens lie in blocks that its block table lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def tokens_of(cache: torch.Tensor, blocks: torch.Tensor, length: int) -> torch.Tensor:
    """The first `length` tokens of one sequence, in order: (length, *row).

    cache: (num_blocks, block_size, *row); blocks: (max_blocks,), the sequence's row of the block table.
    """
    used = -(-length // cache.shape[1])
    return cache[blocks[:used].long()].flatten(0, 1)[:length]


def draw_slots(places: int, num_tokens: int, count: int, generator: torch.Generator) -> torch.Tensor:
    """`count` slot mappings for `make_inputs`: distinct slots below `places`, -1 for (num_tokens + 5) // 8 tokens.

    (count, num_tokens), int64, in random order. A cache of states has a slot for each sequence instead.
    """
    import torch

    def shuffled(size: int) -> torch.Tensor:
        return torch.rand(count, size, generator=generator, device=generator.device).argsort(dim=-1)

    padding = shuffled(num_tokens)[:, : (num_tokens + 5) // 8]
    return shuffled(places)[:, :num_tokens].scatter(1, padding, -1)

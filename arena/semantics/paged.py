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

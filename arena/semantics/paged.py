"""Paged caches (Kwon et al., PagedAttention, 2023): a sequence's tokens lie in blocks that its block table lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def tokens_at(cache: torch.Tensor, blocks: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Tokens of several sequences: (num_seqs, tokens, *row), zero where the position is -1.

    cache: (num_blocks, block_size, *row); blocks: (num_seqs, max_blocks), rows of the block table; positions:
    (num_seqs, tokens), int64.
    """
    block_size = cache.shape[1]
    places = positions.clamp(min=0)
    tokens = cache[blocks.long().gather(1, places // block_size), places % block_size]
    return tokens.masked_fill((positions < 0).view(*positions.shape, *[1] * (cache.dim() - 2)), 0)


def draw_slots(places: int, num_tokens: int, count: int, generator: torch.Generator) -> torch.Tensor:
    """`count` slot mappings for `make_inputs`: distinct slots below `places`, -1 for (num_tokens + 5) // 8 tokens.

    (count, num_tokens), int64, in random order. A cache of states has a slot for each sequence instead.
    """
    import torch

    def shuffled(size: int) -> torch.Tensor:
        return torch.rand(count, size, generator=generator, device=generator.device).argsort(dim=-1)

    padding = shuffled(num_tokens)[:, : (num_tokens + 5) // 8]
    return shuffled(places)[:, :num_tokens].scatter(1, padding, -1)

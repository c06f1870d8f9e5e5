"""Paged caches (Kwon et al., PagedAttention, 2023): a sequence's tokens lie in blocks that its block table lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from arena.semantics.chunks import gather_chunks

if TYPE_CHECKING:
    import torch

Reader = Callable[["torch.Tensor", "torch.Tensor"], tuple["torch.Tensor", "torch.Tensor"]]
"""returns keys and values of some sequences at some positions, as `arena.semantics.attention.Sequences.read` does"""


def tokens_at(cache: torch.Tensor, blocks: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Tokens of several sequences: (num_seqs, tokens, *row), zero where the position is -1.

    cache: (num_blocks, block_size, *row); blocks: (num_seqs, max_blocks), rows of the block table; positions:
    (num_seqs, tokens), int64.
    """
    block_size = cache.shape[1]
    places = positions.clamp(min=0)
    tokens = cache[blocks.long().gather(1, places // block_size), places % block_size]
    return tokens.masked_fill((positions < 0).view(*positions.shape, *[1] * (cache.dim() - 2)), 0)


def cached_tokens(key_cache: torch.Tensor, value_cache: torch.Tensor, block_table: torch.Tensor) -> Reader:
    """Return a reader of keys and values in a paged cache.

    Caches: (num_blocks, block_size, num_kv_heads, head_dim or value_dim); block_table: (num_seqs, max_blocks).
    """

    def read(seqs: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = block_table[seqs]
        return tokens_at(key_cache, blocks, positions), tokens_at(value_cache, blocks, positions)

    return read


def after_prefix(
    prefix: Reader, prefix_lens: torch.Tensor, key: torch.Tensor, value: torch.Tensor, cu_seqlens: torch.Tensor
) -> Reader:
    """Return a reader of sequences that begin with what `prefix` reads and go on with ragged tokens.

    prefix_lens: (num_seqs,); key, value: (num_tokens, num_kv_heads, head_dim or value_dim); cu_seqlens:
    (num_seqs + 1,), of the ragged tokens.
    """
    import torch

    def read(seqs: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        length = prefix_lens[seqs, None]
        keys, values = prefix(seqs, torch.where(positions < length, positions, -1))
        rows = torch.where(positions < length, -1, cu_seqlens[seqs, None] + positions - length)
        return keys + gather_chunks(key, rows), values + gather_chunks(value, rows)

    return read


def draw_slots(places: int, num_tokens: int, count: int, generator: torch.Generator) -> torch.Tensor:
    """`count` slot mappings for `make_inputs`: distinct slots below `places`, -1 for (num_tokens + 5) // 8 tokens.

    (count, num_tokens), int64, in random order. A cache of states has a slot for each sequence instead.
    """
    import torch

    def shuffled(size: int) -> torch.Tensor:
        return torch.rand(count, size, generator=generator, device=generator.device).argsort(dim=-1)

    padding = shuffled(num_tokens)[:, : (num_tokens + 5) // 8]
    return shuffled(places)[:, :num_tokens].scatter(1, padding, -1)


def unread_places(
    block_table: torch.Tensor, lengths: torch.Tensor, num_blocks: int, block_size: int
) -> dict[str, torch.Tensor]:
    """For `unread`: places of key_cache and value_cache that hold no token, (count, num_blocks, block_size).

    block_table: (count, num_seqs, max_blocks); lengths: (count, num_seqs), tokens of each sequence in the cache.
    """
    import torch

    tokens = torch.arange(block_table.shape[-1] * block_size, device=lengths.device).view(-1, block_size)
    present = (tokens < lengths[..., None, None]).flatten(1, 2).to(torch.uint8)
    blocks = block_table.flatten(1).long()[..., None].expand(present.shape)
    used = present.new_zeros(len(present), num_blocks, block_size).scatter_reduce(1, blocks, present, "amax")
    return {"key_cache": used == 0, "value_cache": used == 0}

"""Philox (Salmon et al., 2011), bounded by the high half of a product (Lemire, 2019, without rejection)."""

import torch

from arena.semantics.philox import random_words

BLOCKS_AT_ONCE = 1 << 24


def reference(seeds: torch.Tensor, low: int, high: int, offset: int, N: int) -> torch.Tensor:
    """seeds: (M,); out: (M, N)."""
    blocks = offset + torch.arange(-(-N // 4), device=seeds.device)
    parts = []
    for some in seeds.split(max(1, BLOCKS_AT_ONCE // blocks.numel())):
        words = torch.stack(random_words(some[:, None], blocks), dim=-1).flatten(-2)[:, :N]
        parts.append((low + (words * (high - low) >> 32)).int())
    return torch.cat(parts)

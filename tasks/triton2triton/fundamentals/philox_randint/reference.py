"""Philox (Salmon et al., 2011), bounded by the high half of a product (Lemire, 2019, without rejection)."""

import torch

from arena.semantics.philox import random_words


def reference(seeds: torch.Tensor, low: int, high: int, offset: int, N: int) -> torch.Tensor:
    """seeds: (M,); out: (M, N)."""
    blocks = offset + torch.arange(-(-N // 4), device=seeds.device)
    rows = []
    for seed in seeds:
        words = torch.stack(random_words(seed, blocks), dim=-1).flatten(-2)[:N]
        rows.append((low + (words * (high - low) >> 32)).int())
    return torch.stack(rows)

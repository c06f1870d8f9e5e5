"""Philox (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011), and normal numbers of Box and Muller."""

import torch

from arena.semantics.philox import normal, random_words, uniform

BLOCKS_AT_ONCE = 1 << 24


def reference(seeds: torch.Tensor, mean: float, std: float, N: int) -> torch.Tensor:
    """seeds: (M,); out: (M, N)."""
    blocks = torch.arange(-(-N // 4), device=seeds.device)
    parts = []
    for some in seeds.split(max(1, BLOCKS_AT_ONCE // blocks.numel())):
        u = [uniform(words) for words in random_words(some[:, None], blocks)]
        numbers = torch.stack([*normal(u[0], u[1]), *normal(u[2], u[3])], dim=-1)
        parts.append(mean + std * numbers.flatten(-2)[:, :N])
    return torch.cat(parts)

"""Philox 4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011), as `triton.language` counts it.

`tl.randint4x(seed, offset)` is the block of counter (offset, 0, 0, 0) under the key (low, high half of seed).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF
_TO_UNIT = 4.6566127342e-10
"""Just below 2**-31, so that no uniform number reaches 1."""
_LEAST = 1.0e-7


def random_words(seed: torch.Tensor | int, offset: torch.Tensor, rounds: int = 10) -> list[torch.Tensor]:
    """Four words in [0, 2**32) for every offset in [0, 2**32), as int64 of the broadcast shape."""
    import torch

    seeds = torch.as_tensor(seed, dtype=torch.int64, device=offset.device)
    keys = [seeds & _WORD, (seeds >> 32) & _WORD]
    zero = torch.zeros_like(offset, dtype=torch.int64) + 0 * seeds
    words = [zero + (offset.long() & _WORD), zero, zero, zero]
    for _ in range(rounds):
        high_a, low_a = _product(words[0], _MULTIPLIERS[0])
        high_b, low_b = _product(words[2], _MULTIPLIERS[1])
        words = [high_b ^ words[1] ^ keys[0], low_b, high_a ^ words[3] ^ keys[1], low_a]
        keys = [(key + step) & _WORD for key, step in zip(keys, _KEY_STEPS, strict=True)]
    return words


def uniform(words: torch.Tensor) -> torch.Tensor:
    """Words to float64 in [0, 1), as `tl.rand` does: the word as a signed integer, its magnitude times 2**-31."""
    import torch

    signed = torch.where(words >= 1 << 31, words - (1 << 32), words)
    return torch.where(signed < 0, -signed - 1, signed).double() * _TO_UNIT


def normal(first: torch.Tensor, second: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two uniform numbers to two normal ones (Box and Muller, 1958), as `tl.randn4x` pairs them."""
    radius = (-2 * first.clamp(min=_LEAST).log()).sqrt()
    angle = 2 * math.pi * second
    return radius * angle.cos(), radius * angle.sin()


def _product(word: torch.Tensor, factor: int) -> tuple[torch.Tensor, torch.Tensor]:
    """High and low word of a product of two 32-bit words, by halves: int64 cannot hold it."""
    low = word * (factor & 0xFFFF)
    high = word * (factor >> 16) + (low >> 16)
    return (high >> 16) & _WORD, ((high << 16) | (low & 0xFFFF)) & _WORD

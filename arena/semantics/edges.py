"""Counts as engines meet them, and such as kernels hard-code: one below, at and one above a size of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

HARD_CODED = (64, 128, 256, 512, 1024, 2048, 8192)
"""sizes of blocks and buffers that kernels are written for"""
_EVEN, _AT_EDGES = 0.25, 0.5


def draw_counts(low: int, high: int, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Integers from low (1 or more) to high, int64: a quarter log-uniform, a quarter uniform, half at an edge.

    Edges are both ends, and each of `HARD_CODED` with its neighbours.
    """
    import torch

    device = generator.device
    spread = low * (high / low) ** torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
    even = low + (high - low) * torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
    near = {size + step for size in HARD_CODED for step in (-1, 0, 1)}
    edges = torch.tensor(sorted({low, high, *(size for size in near if low <= size <= high)}), device=device)
    chosen = edges[torch.randint(0, len(edges), shape, generator=generator, device=device)]
    lot = torch.rand(shape, generator=generator, device=device)
    between = torch.where(lot < _EVEN, even, spread).round().long().clamp(low, high)
    return torch.where(lot < 1 - _AT_EDGES, between, chosen)

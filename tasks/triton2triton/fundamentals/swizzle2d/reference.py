"""Grouped program order, as the tiled matrix product of Triton's tutorials visits its tiles."""

import torch


def reference(group: int, M: int, N: int) -> torch.Tensor:
    """order: (M, N)."""
    order = torch.empty(M, N, dtype=torch.int32)
    for first in range(0, M, group):
        height = min(M - first, group)
        inside = torch.arange(height * N, dtype=torch.int32).view(N, height).T
        order[first : first + height] = first * N + inside
    return order

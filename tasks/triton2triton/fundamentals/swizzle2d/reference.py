"""Grouped program order, as the tiled matrix product of Triton's tutorials visits its tiles."""

import torch


def reference(group: int, M: int, N: int) -> torch.Tensor:
    """order: (M, N)."""
    row, column = torch.arange(M, dtype=torch.int32)[:, None], torch.arange(N, dtype=torch.int32)
    first = row // group * group
    height = (M - first).clamp(max=group)
    return first * N + (row - first) + column * height

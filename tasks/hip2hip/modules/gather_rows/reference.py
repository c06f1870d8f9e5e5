"""Rows of a table by their numbers."""

import torch


def reference(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """table: (R, D); index: (K,) int64; y: (K, D)."""
    return table.index_select(0, index)

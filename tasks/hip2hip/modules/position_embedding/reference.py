"""Learned position embeddings: rows of a table, added to a batch of sequences."""

import torch


def reference(x: torch.Tensor, table: torch.Tensor, start: int) -> torch.Tensor:
    """x, y: (B, L, D); table: (P, D)."""
    return x + table[start : start + x.shape[1]]

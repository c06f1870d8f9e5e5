"""Ragged batches: sequences of different lengths one after the other, told apart by `cu_seqlens`."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def spans(cu_seqlens: torch.Tensor) -> list[tuple[int, int]]:
    """(begin, end) of every sequence; cu_seqlens: (num_seqs + 1,), ascending, from 0."""
    return list(itertools.pairwise(cu_seqlens.tolist()))


def owners(cu_seqlens: torch.Tensor) -> torch.Tensor:
    """The sequence of every token: (num_tokens,), int64."""
    import torch

    lengths = cu_seqlens.diff().long()
    return torch.repeat_interleave(torch.arange(lengths.numel(), device=lengths.device), lengths)

"""Flat to padded sequences."""

import torch

from arena.semantics.ragged import spans


def reference(x: torch.Tensor, cu_seqlens: torch.Tensor, padding: float, max_len: int) -> torch.Tensor:
    """x: (num_tokens, hidden); cu_seqlens: (num_seqs + 1,); out: (num_seqs, max_len, hidden)."""
    out = torch.full((cu_seqlens.numel() - 1, max_len, x.shape[1]), padding, dtype=x.dtype, device=x.device)
    for row, (begin, end) in zip(out, spans(cu_seqlens), strict=True):
        kept = x[begin:end][:max_len]
        row[: len(kept)] = kept
    return out

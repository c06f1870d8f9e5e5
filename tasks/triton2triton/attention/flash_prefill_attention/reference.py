"""Softmax attention (Vaswani et al., 2017) of ragged sequences."""

import torch

from arena.semantics.attention import Rule, Sequences, attend
from arena.semantics.chunks import gather_chunks


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seqlens: torch.Tensor,
    sm_scale: float,
    causal: bool,
) -> torch.Tensor:
    """query, key: (num_tokens, heads, head_dim); value: (num_tokens, num_kv_heads, value_dim)."""

    def read(seqs: torch.Tensor, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = torch.where(positions < 0, -1, cu_seqlens[seqs, None] + positions)
        return gather_chunks(key, rows), gather_chunks(value, rows)

    lengths = cu_seqlens.diff()
    sequences = Sequences(query, cu_seqlens, lengths, read, *value.shape[1:])
    return attend(sequences, Rule(sm_scale, causal=causal))

"""Attention without its softmax (Katharopoulos et al., 2020, before linearization), scores rounded to 8 bits."""

import torch

from arena.semantics.quantize import fp8_codes


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    sm_scale: float,
    out_scale: float,
    fp8: torch.dtype,
) -> torch.Tensor:
    """query: (batch, M, head_dim); key: (batch, N, head_dim); value: (batch, N, value_dim); out as value, of M rows."""
    out = []
    for queries, keys, values in zip(query, key, value, strict=True):
        scores = fp8_codes(sm_scale * (queries @ keys.T), fp8).to(values.dtype)
        out.append(out_scale * (scores @ values))
    return torch.stack(out)

"""The expert layers of a sparsely gated mixture of experts (Shazeer et al., 2017), one expert after the other."""

import torch

from arena.semantics.ragged import spans


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    scales: torch.Tensor,
    row_weights: torch.Tensor | None,
    expert_offsets: torch.Tensor,
) -> torch.Tensor:
    """x: (num_tokens, K); weight: (num_experts, N, K); scales: (num_experts, N); out: (num_tokens, N)."""
    parts = []
    for expert, (begin, end) in enumerate(spans(expert_offsets)):
        rows = x[begin:end]
        parts.append(rows @ weight[expert].to(rows.dtype).T * scales[expert])
    out = torch.cat(parts)
    return out if row_weights is None else out * row_weights[:, None]

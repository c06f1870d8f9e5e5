"""One expert of a sparsely gated mixture of experts (Shazeer et al., 2017), int8 weights scaled by output."""

import torch


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    scales: torch.Tensor,
    bias: torch.Tensor | None,
    expert_id: torch.Tensor,
    token_ids: torch.Tensor,
    expert_num_tokens: torch.Tensor,
    out: torch.Tensor,
) -> torch.Tensor:
    """x: (num_tokens, K); weight: (num_experts, N, K); scales, bias: (num_experts, N); out: (max_tokens, N)."""
    expert, rows = int(expert_id), int(expert_num_tokens)
    sums = x[token_ids[:rows].long()] @ weight[expert].to(x.dtype).T * scales[expert]
    out[:rows] = sums if bias is None else sums + bias[expert]
    return out

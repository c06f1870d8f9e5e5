"""Additive attention of each query over the items of each support set."""

import torch
import torch.nn.functional as F


def reference(
    support: torch.Tensor,
    query: torch.Tensor,
    support_weight: torch.Tensor,
    query_weight: torch.Tensor,
    bias: torch.Tensor,
    score_weight: torch.Tensor,
) -> torch.Tensor:
    """support: (B, N, K, D); query: (B, Q, D); the weights: (A, D); bias, score_weight: (A,); y: (B, Q, N, D)."""
    of_support = F.linear(support, support_weight)[:, None]
    of_query = F.linear(query, query_weight, bias)[:, :, None, None]
    scores = torch.tanh(of_support + of_query) @ score_weight  # (B, Q, N, K)
    return torch.einsum("bqnk,bnkd->bqnd", torch.softmax(scores, dim=-1), support)

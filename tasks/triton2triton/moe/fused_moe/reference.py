"""The expert layer of a sparsely gated mixture of experts (Shazeer et al., 2017), one expert after the other."""

from typing import Any

import torch

from arena.semantics.routing import Routing, choices_by_expert, draw_routings


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Routing with popular and idle experts; past the rows in use stands what an earlier batch left."""
    return draw_routings(case, generator, count)


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    topk_weights: torch.Tensor,
    sorted_token_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    num_tokens_post_padded: torch.Tensor,
    mul_routed_weight: bool,
) -> torch.Tensor:
    """x: (num_tokens, K); weight: (num_experts, N, K); bias: (num_experts, N); out: (num_tokens, top_k, N)."""
    num_tokens, top_k = topk_weights.shape
    out = x.new_zeros(num_tokens * top_k, weight.shape[1])
    routing = Routing(sorted_token_ids, expert_ids, num_tokens_post_padded)
    for expert, choices in choices_by_expert(routing, num_tokens * top_k):
        rows = x[choices // top_k] @ weight[expert].T
        out[choices] = rows if bias is None else rows + bias[expert]
    if mul_routed_weight:
        out = out * topk_weights.flatten().unsqueeze(1)
    return out.view(num_tokens, top_k, -1)

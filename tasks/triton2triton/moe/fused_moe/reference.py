"""The expert layer of a sparsely gated mixture of experts (Shazeer et al., 2017), one expert after the other."""

from typing import Any

import torch

from arena.semantics.routing import Routing, choices_by_expert, choose_experts, sort_by_expert, stacked, with_stale_tail


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Routing with popular and idle experts; past the rows in use stands what an earlier batch left."""
    tokens, experts, top_k, block_m = (case[name] for name in ("num_tokens", "num_experts", "top_k", "block_m"))
    blocks = min(-(-(tokens * top_k + experts * (block_m - 1)) // block_m), tokens * top_k)

    def once() -> Routing:
        chosen = choose_experts(tokens, experts, top_k, generator, 3.0, case["num_active"])
        routing = sort_by_expert(chosen, experts, block_m, blocks * block_m)
        return with_stale_tail(routing, tokens * top_k, experts, generator)

    return stacked([once() for _ in range(count)])


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

"""Combination of experts' results by routing weight (the combine step of Lepikhin et al., GShard, 2020)."""

from typing import Any

import torch

from arena.semantics.routing import choices_elsewhere, choose_experts, in_parts


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """topk_ids: distinct experts for each token, -1 in (num_tokens * top_k + 4) // 8 random places."""
    tokens, experts, top_k = case["num_tokens"], case["num_experts"], case["top_k"]

    def draw(sets: int) -> dict[str, torch.Tensor]:
        chosen = choose_experts(sets, tokens, experts, top_k, generator, 2.0)
        return {"topk_ids": choices_elsewhere(chosen, (tokens * top_k + 4) // 8, generator)}

    return in_parts(count, tokens * experts, draw)


def reference(
    expert_out: torch.Tensor, topk_weights: torch.Tensor, topk_ids: torch.Tensor, input_index: torch.Tensor
) -> torch.Tensor:
    """expert_out: (num_rows, hidden); topk_weights, topk_ids, input_index: (num_tokens, top_k)."""
    weights = torch.where(topk_ids >= 0, topk_weights, 0.0)
    out = expert_out.new_zeros(topk_ids.shape[0], expert_out.shape[1])
    for choice in range(topk_ids.shape[1]):
        out = out + weights[:, choice].unsqueeze(1) * expert_out[input_index[:, choice].long()]
    return out

"""Load of every expert of a mixture of experts: a histogram of the router's choices."""

from typing import Any

import torch

from arena.semantics.routing import choose_experts, in_parts, permutations


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Choices with popular experts, one in nine of them -1; expert_map: every local expert in one random place."""
    tokens, experts = case["num_tokens"], case["num_experts"]

    def draw(sets: int) -> dict[str, torch.Tensor]:
        chosen = choose_experts(sets, tokens, experts, case["top_k"], generator, 2.0)
        none = torch.rand(chosen.shape, generator=generator, device=generator.device) < 1 / 9
        places = permutations(sets, experts, generator)
        local = torch.where(places < case["num_local_experts"], places, -1)
        return {"topk_ids": chosen.masked_fill(none, -1), "expert_map": local}

    return in_parts(count, tokens * experts, draw)


def reference(topk_ids: torch.Tensor, expert_map: torch.Tensor | None, num_local_experts: int) -> torch.Tensor:
    """topk_ids: (num_tokens, top_k); expert_map: (num_experts,); expert_num_tokens: (num_local_experts,)."""
    ids = topk_ids.flatten().long()
    ids = ids[ids >= 0]
    local = ids if expert_map is None else expert_map[ids].long()
    return torch.bincount(local[(local >= 0) & (local < num_local_experts)], minlength=num_local_experts).int()

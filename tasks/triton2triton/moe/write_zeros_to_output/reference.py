"""Rows of a grouped matrix product whose experts are elsewhere (expert parallelism, Lepikhin et al., GShard, 2020)."""

from typing import Any

import torch

from arena.semantics.routing import (
    Routing,
    choices_by_expert,
    most_blocks,
    permutations,
    sort_by_expert,
    with_stale_tail,
)


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Local experts are a run of the model's; num_choices_elsewhere choices fall on those before and after it."""
    experts, local, block_m = case["num_experts"], case["num_local_experts"], case["block_m"]
    choices, device = case["num_tokens"] * case["top_k"], generator.device
    capacity = most_blocks(choices, experts, block_m) * block_m

    def below(high: int, size: int) -> torch.Tensor:
        return torch.randint(0, max(high, 1), (count, size), generator=generator, device=device)

    first = below(experts - local + 1, 1)
    away = (below(experts - local, choices) + first + local) % experts
    here = below(local, choices) + first
    is_away = permutations(count, choices, generator) < case["num_choices_elsewhere"]
    ids = torch.where(is_away, away, here).unsqueeze(-1)
    routing = with_stale_tail(sort_by_expert(ids, experts, block_m, capacity), choices, experts, generator)
    names = routing.expert_ids - first
    local_names = torch.where((names >= 0) & (names < local), names, -1)
    return routing._replace(expert_ids=local_names)._asdict()


def reference(
    out: torch.Tensor,
    sorted_token_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    num_tokens_post_padded: torch.Tensor,
) -> torch.Tensor:
    """out: (num_tokens * top_k, N)."""
    routing = Routing(sorted_token_ids, expert_ids, num_tokens_post_padded)
    for expert, choices in choices_by_expert(routing, out.shape[0]):
        if expert == -1:
            out[choices] = 0
    return out

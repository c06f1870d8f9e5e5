"""Rows of a grouped matrix product whose experts are elsewhere (expert parallelism, Lepikhin et al., GShard, 2020)."""

from typing import Any

import torch

from arena.semantics.routing import Routing, choices_by_expert, most_blocks, sort_by_expert, stacked, with_stale_tail


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Local experts are a run of the model's; num_choices_elsewhere choices fall on those before and after it."""
    experts, local, block_m = case["num_experts"], case["num_local_experts"], case["block_m"]
    choices, device = case["num_tokens"] * case["top_k"], generator.device
    capacity = most_blocks(choices, experts, block_m) * block_m

    def below(high: int, size: int) -> torch.Tensor:
        return torch.randint(0, high, (size,), generator=generator, device=device)

    def once() -> Routing:
        first = int(below(experts - local + 1, 1))
        order = torch.randperm(choices, generator=generator, device=device)
        away, here = order.tensor_split([case["num_choices_elsewhere"]])
        ids = torch.zeros(choices, dtype=torch.int64, device=device)
        ids[away] = (below(max(experts - local, 1), away.numel()) + first + local) % experts
        ids[here] = below(max(local, 1), here.numel()) + first
        routing = sort_by_expert(ids.unsqueeze(1), experts, block_m, capacity)
        routing = with_stale_tail(routing, choices, experts, generator)
        names = routing.expert_ids - first
        return routing._replace(expert_ids=torch.where((names >= 0) & (names < local), names, -1))

    return stacked([once() for _ in range(count)])


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

"""Low-rank adaptation (Hu et al., 2021) of the experts of a mixture of experts, with many adapters in a batch."""

from typing import Any

import torch

from arena.semantics.chunks import gather_chunks
from arena.semantics.ragged import at_once
from arena.semantics.routing import (
    Routing,
    choose_experts,
    in_parts,
    most_blocks,
    permutations,
    sort_by_expert,
    used_blocks,
    with_stale_tail,
)


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """One routing for each adapter, of the choices of its tokens; random num_tokens // 4 tokens have no adapter."""
    tokens, experts, top_k, block_m = (case[name] for name in ("num_tokens", "num_experts", "top_k", "block_m"))
    loras, device = case["num_loras"], generator.device
    capacity = most_blocks(tokens * top_k, experts, block_m) * block_m

    def draw(sets: int) -> dict[str, torch.Tensor]:
        chosen = choose_experts(sets, tokens, experts, top_k, generator)
        lora = torch.randint(0, loras, (sets, tokens), generator=generator, device=device)
        lora.scatter_(1, permutations(sets, tokens, generator)[:, : tokens // 4], -1)
        own = lora.unsqueeze(1) == torch.arange(loras, device=device).unsqueeze(1)
        ids = torch.where(own.unsqueeze(-1), chosen.unsqueeze(1), -1)
        routing = sort_by_expert(ids.flatten(0, 1), experts, block_m, capacity)
        made = with_stale_tail(routing, tokens * top_k, experts, generator)._asdict()
        routed = {name: values.unflatten(0, (sets, loras)) for name, values in made.items()}
        return {**routed, "num_tokens_post_padded": routed["num_tokens_post_padded"].flatten(1)}

    return in_parts(count, tokens * max(experts, loras * top_k), draw)


def reference(
    x: torch.Tensor,
    lora_a: torch.Tensor,
    lora_b: torch.Tensor,
    topk_weights: torch.Tensor,
    sorted_token_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    num_tokens_post_padded: torch.Tensor,
    out: torch.Tensor,
    mul_routed_weight: bool,
) -> torch.Tensor:
    """x: (num_tokens, K); lora_a, lora_b: (slices, loras, experts, rank, K) and (…, N, rank)."""
    num_tokens, top_k = topk_weights.shape
    slices, _, _, rank, K = lora_a.shape
    loras, experts, choices = used_blocks(
        Routing(sorted_token_ids, expert_ids, num_tokens_post_padded), num_tokens * top_k
    )
    some = at_once(2 * slices * rank * (K + lora_b.shape[3]) + 2 * choices.shape[1] * (K + out.shape[2]))
    added = torch.zeros_like(out).view(num_tokens * top_k, -1)
    for lora, expert, rows in zip(*(numbers.split(some) for numbers in (loras, experts, choices)), strict=True):
        shrunk = torch.einsum("bmk,sbrk->sbmr", gather_chunks(x, rows // top_k), lora_a[:, lora, expert])
        grown = torch.einsum("sbmr,sbnr->bmsn", shrunk, lora_b[:, lora, expert]).flatten(2)
        added[rows[rows >= 0]] = grown[rows >= 0]
    if mul_routed_weight:
        added = added * topk_weights.flatten().unsqueeze(1)
    return out + added.view_as(out)

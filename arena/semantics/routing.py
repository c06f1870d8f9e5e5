"""Mixture-of-experts routing: every expert's tokens together, padded to whole blocks of the kernel's rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch


class Routing(NamedTuple):
    """The rows of a grouped matrix product.

    sorted_token_ids: (capacity,), int32; index into the flattened (num_tokens, top_k) choices, grouped by expert in
    ascending order, num_tokens * top_k where a row is padding. expert_ids: (capacity / block_m,), int32; the expert of
    each block of block_m rows, 0 for blocks past the end. num_tokens_post_padded: (1,), int32; rows in use.
    """

    sorted_token_ids: torch.Tensor
    expert_ids: torch.Tensor
    num_tokens_post_padded: torch.Tensor


def choose_experts(
    num_tokens: int,
    num_experts: int,
    top_k: int,
    generator: torch.Generator,
    skew: float = 1.0,
    num_active: int | None = None,
) -> torch.Tensor:
    """Distinct experts for every token: (num_tokens, top_k), int32; `skew` above 1 makes some experts popular.

    With `num_active` exactly so many of the experts are chosen, each of them at least once: top_k <= num_active and
    num_active <= min(num_experts, num_tokens * top_k).
    """
    import torch

    device = generator.device
    popularity = torch.rand(num_experts, generator=generator, device=device).clamp(min=1e-6) ** (skew - 1)
    keys = torch.rand(num_tokens, num_experts, generator=generator, device=device).clamp(min=1e-30).log() / popularity
    if num_active is not None:
        experts = torch.randperm(num_experts, generator=generator, device=device)
        keys[:, experts[num_active:]] = -torch.inf
        tokens = torch.randperm(num_tokens, generator=generator, device=device)
        keys[tokens[torch.arange(num_active, device=device) // top_k], experts[:num_active]] = (
            1.0  # logarithms are <= 0
        )
    return keys.topk(top_k, dim=-1).indices.int()


def most_blocks(num_choices: int, num_experts: int, block_m: int) -> int:
    """Blocks that the worst distribution needs: each expert with a row more than whole blocks, or each choice alone."""
    return min(-(-(num_choices + num_experts * (block_m - 1)) // block_m), num_choices)


def sort_by_expert(topk_ids: torch.Tensor, num_experts: int, block_m: int, capacity: int) -> Routing:
    """Group the choices by expert and pad every expert's rows to whole blocks of `block_m`.

    topk_ids: (num_tokens, top_k), ids in [0, num_experts), or -1 for a choice that gets no row. capacity: a multiple
    of block_m, at least `most_blocks` of them.
    """
    import torch

    flat = topk_ids.flatten().long()
    order = flat.argsort(stable=True)
    order = order[flat[order] >= 0]
    counts = torch.bincount(flat[order], minlength=num_experts)
    blocks = (counts + block_m - 1) // block_m
    starts = (blocks.cumsum(0) - blocks) * block_m
    within = torch.arange(order.numel(), device=flat.device) - (counts.cumsum(0) - counts)[flat[order]]
    sorted_ids = torch.full((capacity,), flat.numel(), dtype=torch.int32, device=flat.device)
    sorted_ids[starts[flat[order]] + within] = order.int()
    experts = torch.zeros(capacity // block_m, dtype=torch.int32, device=flat.device)
    used = torch.repeat_interleave(torch.arange(num_experts, device=flat.device), blocks)
    experts[: used.numel()] = used.int()
    return Routing(sorted_ids, experts, (blocks.sum() * block_m).int().reshape(1))


def with_stale_tail(routing: Routing, num_choices: int, num_experts: int, generator: torch.Generator) -> Routing:
    """The same rows in use, and past them what an earlier batch could have left: any choices, any experts."""
    import torch

    def stale(old: torch.Tensor, used: torch.Tensor, high: int) -> torch.Tensor:
        past = torch.arange(old.numel(), device=old.device) >= used
        drawn = torch.randint(0, high, old.shape, generator=generator, device=old.device, dtype=old.dtype)
        return torch.where(past, drawn, old)

    used = routing.num_tokens_post_padded
    block_m = routing.sorted_token_ids.numel() // routing.expert_ids.numel()
    return Routing(
        stale(routing.sorted_token_ids, used, num_choices),
        stale(routing.expert_ids, used // block_m, num_experts),
        used,
    )


def draw_routings(case: Mapping[str, int], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """`count` routings for `make_inputs`, with popular and idle experts, and leftovers past the rows in use."""
    tokens, experts, top_k, block_m = (case[name] for name in ("num_tokens", "num_experts", "top_k", "block_m"))
    capacity = most_blocks(tokens * top_k, experts, block_m) * block_m

    def once() -> Routing:
        chosen = choose_experts(tokens, experts, top_k, generator, 3.0, case["num_active"])
        return with_stale_tail(sort_by_expert(chosen, experts, block_m, capacity), tokens * top_k, experts, generator)

    return stacked([once() for _ in range(count)])


def stacked(routings: Sequence[Routing]) -> dict[str, torch.Tensor]:
    """Several routings as what `make_inputs` returns: every tensor by its name, with a leading dimension."""
    import torch

    return {name: torch.stack([getattr(routing, name) for routing in routings]) for name in Routing._fields}


def choices_by_expert(routing: Routing, num_choices: int) -> Iterator[tuple[int, torch.Tensor]]:
    """(expert, its choices as int64) for every expert that has blocks among the rows in use; padding is left out."""
    blocks = routing.expert_ids.numel()
    used = int(routing.num_tokens_post_padded) * blocks // routing.sorted_token_ids.numel()
    experts = routing.expert_ids[:used]
    rows = routing.sorted_token_ids.view(blocks, -1)[:used].long()
    for expert in sorted(set(experts.tolist())):
        chosen = rows[experts == expert].flatten()
        yield expert, chosen[chosen < num_choices]


def tokens_per_expert(
    total: int, num_experts: int, most: int, num_active: int, generator: torch.Generator, skew: float = 3.0
) -> torch.Tensor:
    """Counts that add up to `total`: (num_experts,), int32, at most `most` each, 0 but for `num_active` experts.

    num_active <= total <= num_active * most. `skew` as in `choose_experts`.
    """
    import torch

    device = generator.device
    popularity = torch.rand(num_experts, 1, generator=generator, device=device).clamp(min=1e-6) ** (skew - 1)
    keys = torch.rand(num_experts, most, generator=generator, device=device).clamp(min=1e-30).log() / popularity
    experts = torch.randperm(num_experts, generator=generator, device=device)
    keys[experts[num_active:]] = -torch.inf
    keys[experts[:num_active], 0] = 1.0
    taken = keys.flatten().topk(total).indices // most
    return torch.bincount(taken, minlength=num_experts).int()

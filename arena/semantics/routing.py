"""Mixture-of-experts routing: every expert's tokens together, padded to whole blocks of the kernel's rows.

What draws, draws `count` at once: PyTorch is asked for as many operations for a thousand sets as for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

_MOST_KEYS = 1 << 26
"""random numbers that are looked at together: a quarter of a gigabyte"""
_MOST_DRAWN = 4096
"""tokens of a set whose experts are drawn; each one more repeats the choice of a random one of these"""


class Routing(NamedTuple):
    """The rows of a grouped matrix product, of one routing or, with a leading dimension, of several.

    sorted_token_ids: (capacity,), int32; index into the flattened (num_tokens, top_k) choices, grouped by expert in
    ascending order, num_tokens * top_k where a row is padding. expert_ids: (capacity / block_m,), int32; the expert of
    each block of block_m rows, 0 for blocks past the end. num_tokens_post_padded: (1,), int32; rows in use.
    """

    sorted_token_ids: torch.Tensor
    expert_ids: torch.Tensor
    num_tokens_post_padded: torch.Tensor


class Blocks(NamedTuple):
    """Blocks of rows that one expert computes.

    routings: (num_blocks,), which of several routings each is of. experts: (num_blocks,). choices: (num_blocks,
    block_m), -1 where a row is padding.
    """

    routings: torch.Tensor
    experts: torch.Tensor
    choices: torch.Tensor


def permutations(count: int, size: int, generator: torch.Generator) -> torch.Tensor:
    """`count` random orders of 0 … size-1: (count, size), int64."""
    import torch

    return torch.rand(count, size, generator=generator, device=generator.device).argsort(dim=-1)


def in_parts(count: int, keys: int, draw: Callable[[int], dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """What `draw(n)` gives for all `count` sets, as many at a time as memory for `keys` numbers each allows."""
    import torch

    most = max(1, _MOST_KEYS // max(keys, 1))
    parts = [draw(min(most, count - first)) for first in range(0, count, most)]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def choose_experts(
    count: int,
    num_tokens: int,
    num_experts: int,
    top_k: int,
    generator: torch.Generator,
    skew: float = 1.0,
    num_active: int | None = None,
) -> torch.Tensor:
    """Distinct experts for every token: (count, num_tokens, top_k), int32; `skew` above 1 makes some popular.

    With `num_active` exactly so many of the experts are chosen, each of them at least once: top_k <= num_active and
    num_active <= min(num_experts, num_tokens * top_k). A large batch holds some choices several times: a random number
    for each token and expert would take longer than what is timed.
    """
    import torch

    if num_tokens > max(_MOST_DRAWN, num_experts):
        drawn = choose_experts(count, max(_MOST_DRAWN, num_experts), num_experts, top_k, generator, skew, num_active)
        shape = (count, num_tokens - drawn.shape[1], 1)
        repeated = torch.randint(0, drawn.shape[1], shape, generator=generator, device=generator.device)
        return torch.cat([drawn, drawn.gather(1, repeated.expand(-1, -1, top_k))], dim=1)
    device = generator.device
    popularity = torch.rand(count, 1, num_experts, generator=generator, device=device).clamp(min=1e-6) ** (skew - 1)
    keys = torch.rand(count, num_tokens, num_experts, generator=generator, device=device).clamp(min=1e-30)
    keys = keys.log_().div_(popularity)
    if num_active is not None:
        experts = permutations(count, num_experts, generator)
        idle = experts[:, None, num_active:].expand(-1, num_tokens, -1)
        keys.scatter_(2, idle, -torch.inf)
        tokens = permutations(count, num_tokens, generator)[:, torch.arange(num_active, device=device) // top_k]
        sets = torch.arange(count, device=device).unsqueeze(1)
        keys[sets, tokens, experts[:, :num_active]] = 1.0  # logarithms are <= 0
    return keys.topk(top_k, dim=-1).indices.int()


def most_blocks(num_choices: int, num_experts: int, block_m: int) -> int:
    """Blocks that the worst distribution needs: each expert with a row more than whole blocks, or each choice alone."""
    return min(-(-(num_choices + num_experts * (block_m - 1)) // block_m), num_choices)


def sort_by_expert(topk_ids: torch.Tensor, num_experts: int, block_m: int, capacity: int) -> Routing:
    """Group the choices by expert and pad every expert's rows to whole blocks of `block_m`.

    topk_ids: (count, num_tokens, top_k), ids in [0, num_experts), or -1 for a choice that gets no row. capacity: a
    multiple of block_m, at least `most_blocks` of them.
    """
    import torch

    device, flat = topk_ids.device, topk_ids.flatten(1).long()
    count, choices = flat.shape
    owner = torch.where(flat < 0, num_experts, flat)
    order = owner.argsort(dim=1, stable=True)
    owner = owner.gather(1, order)
    counts = torch.zeros(count, num_experts + 1, dtype=torch.int64, device=device)
    counts.scatter_add_(1, owner, torch.ones_like(owner))
    blocks = (counts + block_m - 1) // block_m
    starts = (blocks.cumsum(1) - blocks) * block_m
    within = torch.arange(choices, device=device) - (counts.cumsum(1) - counts).gather(1, owner)
    rows = torch.where(owner < num_experts, starts.gather(1, owner) + within, capacity)
    sorted_ids = torch.full((count, capacity + 1), choices, dtype=torch.int32, device=device)
    sorted_ids.scatter_(1, rows, order.int())
    ends = blocks[:, :num_experts].cumsum(1)
    places = torch.arange(capacity // block_m, device=device).expand(count, -1).contiguous()
    experts = torch.searchsorted(ends, places, right=True).int()
    experts = torch.where(experts < num_experts, experts, 0)
    return Routing(sorted_ids[:, :capacity].contiguous(), experts, (ends[:, -1:] * block_m).int())


def with_stale_tail(routing: Routing, num_choices: int, num_experts: int, generator: torch.Generator) -> Routing:
    """The same rows in use, and past them what an earlier batch could have left: any choices, any experts."""
    import torch

    def stale(old: torch.Tensor, used: torch.Tensor, high: int) -> torch.Tensor:
        past = torch.arange(old.shape[-1], device=old.device) >= used
        drawn = torch.randint(0, high, old.shape, generator=generator, device=old.device, dtype=old.dtype)
        return torch.where(past, drawn, old)

    used = routing.num_tokens_post_padded
    block_m = routing.sorted_token_ids.shape[-1] // routing.expert_ids.shape[-1]
    return Routing(
        stale(routing.sorted_token_ids, used, num_choices),
        stale(routing.expert_ids, used // block_m, num_experts),
        used,
    )


def draw_routings(case: Mapping[str, int], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """`count` routings for `make_inputs`, with popular and idle experts, and leftovers past the rows in use."""
    tokens, experts, top_k, block_m = (case[name] for name in ("num_tokens", "num_experts", "top_k", "block_m"))
    capacity = most_blocks(tokens * top_k, experts, block_m) * block_m

    def draw(sets: int) -> dict[str, torch.Tensor]:
        chosen = choose_experts(sets, tokens, experts, top_k, generator, 3.0, case["num_active"])
        routing = sort_by_expert(chosen, experts, block_m, capacity)
        return with_stale_tail(routing, tokens * top_k, experts, generator)._asdict()

    return in_parts(count, tokens * experts, draw)


def choices_elsewhere(topk_ids: torch.Tensor, elsewhere: int, generator: torch.Generator) -> torch.Tensor:
    """The same choices, (count, num_tokens, top_k), of which `elsewhere` random ones of each set are -1."""
    places = permutations(topk_ids.shape[0], topk_ids[0].numel(), generator)[:, :elsewhere]
    return topk_ids.flatten(1).scatter(1, places, -1).view_as(topk_ids)


def choices_by_expert(routing: Routing, num_choices: int) -> Iterator[tuple[int, torch.Tensor]]:
    """(expert, its choices as int64) for every expert that has blocks among the rows in use; padding is left out."""
    blocks = routing.expert_ids.numel()
    used = int(routing.num_tokens_post_padded) * blocks // routing.sorted_token_ids.numel()
    experts = routing.expert_ids[:used]
    rows = routing.sorted_token_ids.view(blocks, -1)[:used].long()
    for expert in sorted(set(experts.tolist())):
        chosen = rows[experts == expert].flatten()
        yield expert, chosen[chosen < num_choices]


def used_blocks(routing: Routing, num_choices: int) -> Blocks:
    """Return the blocks among the rows in use of several routings."""
    import torch

    blocks = routing.expert_ids.shape[1]
    block_m = routing.sorted_token_ids.shape[1] // blocks
    used = (
        torch.arange(blocks, device=routing.expert_ids.device) < routing.num_tokens_post_padded.view(-1, 1) // block_m
    )
    choices = routing.sorted_token_ids.reshape(-1, blocks, block_m)[used].long()
    choices = choices.masked_fill(choices >= num_choices, -1)
    return Blocks(used.nonzero()[:, 0], routing.expert_ids[used].long(), choices)


def tokens_per_expert(
    count: int,
    total: int,
    num_experts: int,
    most: int,
    num_active: int,
    generator: torch.Generator,
    skew: float = 3.0,
) -> torch.Tensor:
    """Counts that add up to `total`: (count, num_experts), int32, at most `most`, 0 but for `num_active` experts.

    num_active <= total <= num_active * most. `skew` as in `choose_experts`.
    """
    import torch

    device = generator.device

    def draw(sets: int) -> dict[str, torch.Tensor]:
        popularity = torch.rand(sets, num_experts, 1, generator=generator, device=device).clamp(min=1e-6) ** (skew - 1)
        keys = torch.rand(sets, num_experts, most, generator=generator, device=device).clamp(min=1e-30)
        keys = keys.log_().div_(popularity)
        experts, of = permutations(sets, num_experts, generator), torch.arange(sets, device=device).unsqueeze(1)
        keys[of, experts[:, num_active:]] = -torch.inf
        keys[of, experts[:, :num_active], 0] = 1.0
        taken = keys.flatten(1).topk(total).indices // most
        counts = torch.zeros(sets, num_experts, dtype=torch.int32, device=device)
        return {"counts": counts.scatter_add_(1, taken, torch.ones_like(taken, dtype=torch.int32))}

    return in_parts(count, num_experts * most, draw)["counts"]

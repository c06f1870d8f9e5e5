"""Mixture-of-experts routing: every expert's tokens together, padded to whole blocks of the kernel's rows."""

from __future__ import annotations

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
    num_tokens: int, num_experts: int, top_k: int, generator: torch.Generator, skew: float = 1.0
) -> torch.Tensor:
    """Distinct experts for every token: (num_tokens, top_k), int32; `skew` above 1 makes some experts popular."""
    import torch

    device = generator.device
    popularity = torch.rand(num_experts, generator=generator, device=device).clamp(min=1e-6) ** (skew - 1)
    keys = torch.rand(num_tokens, num_experts, generator=generator, device=device).clamp(min=1e-30).log() / popularity
    return keys.topk(top_k, dim=-1).indices.int()


def sort_by_expert(topk_ids: torch.Tensor, num_experts: int, block_m: int, capacity: int) -> Routing:
    """Group the choices by expert and pad every expert's rows to whole blocks of `block_m`.

    topk_ids: (num_tokens, top_k), ids in [0, num_experts). capacity: a multiple of block_m, at least
    num_tokens * top_k + num_experts * (block_m - 1).
    """
    import torch

    flat = topk_ids.flatten().long()
    order = flat.argsort(stable=True)
    counts = torch.bincount(flat, minlength=num_experts)
    blocks = (counts + block_m - 1) // block_m
    starts = (blocks.cumsum(0) - blocks) * block_m
    within = torch.arange(flat.numel(), device=flat.device) - (counts.cumsum(0) - counts)[flat[order]]
    sorted_ids = torch.full((capacity,), flat.numel(), dtype=torch.int32, device=flat.device)
    sorted_ids[starts[flat[order]] + within] = order.int()
    experts = torch.zeros(capacity // block_m, dtype=torch.int32, device=flat.device)
    used = torch.repeat_interleave(torch.arange(num_experts, device=flat.device), blocks)
    experts[: used.numel()] = used.int()
    return Routing(sorted_ids, experts, (blocks.sum() * block_m).int().reshape(1))

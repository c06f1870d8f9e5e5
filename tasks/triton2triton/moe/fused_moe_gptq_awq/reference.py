"""Expert layers of a mixture of experts with group-scaled integer weights (GPTQ, 2022; AWQ, 2023)."""

from typing import Any

import torch

from arena.semantics.chunks import gather_chunks
from arena.semantics.ragged import at_once
from arena.semantics.routing import Routing, draw_routings, used_blocks


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Routing with popular and idle experts; past the rows in use stands what an earlier batch left."""
    return draw_routings(case, generator, count)


def halves(packed: torch.Tensor, dim: int) -> torch.Tensor:
    """Two 4-bit codes for every byte along `dim`, the low half first."""
    return torch.stack([packed & 15, packed >> 4], dim=dim + 1).flatten(dim, dim + 1)


def reference(
    x: torch.Tensor,
    qweight: torch.Tensor,
    scales: torch.Tensor,
    qzeros: torch.Tensor | None,
    topk_weights: torch.Tensor,
    sorted_token_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    num_tokens_post_padded: torch.Tensor,
    mul_routed_weight: bool,
    bits: int,
) -> torch.Tensor:
    """x: (num_tokens, K); scales: (num_experts, N, groups); out: (num_tokens, top_k, N)."""
    num_tokens, top_k = topk_weights.shape
    _, n, groups = scales.shape
    routing = Routing(sorted_token_ids[None], expert_ids[None], num_tokens_post_padded)
    _, experts, choices = used_blocks(routing, num_tokens * top_k)
    some = at_once(4 * n * x.shape[1] + 2 * choices.shape[1] * (n + x.shape[1]))
    out = x.new_zeros(num_tokens * top_k, n)
    for expert, rows in zip(experts.split(some), choices.split(some), strict=True):
        codes = qweight[expert] if bits == 8 else halves(qweight[expert], 2)
        zeros: torch.Tensor | float = float(2 ** (bits - 1))
        if qzeros is not None:
            unpacked = qzeros[expert] if bits == 8 else halves(qzeros[expert], 1)[:, :n]
            zeros = unpacked.to(x.dtype).unsqueeze(-1)
        weight = (codes.to(x.dtype).unflatten(2, (groups, -1)) - zeros) * scales[expert].unsqueeze(-1)
        products = torch.bmm(gather_chunks(x, rows // top_k), weight.flatten(2).transpose(1, 2))
        out[rows[rows >= 0]] = products[rows >= 0]
    if mul_routed_weight:
        out = out * topk_weights.flatten().unsqueeze(1)
    return out.view(num_tokens, top_k, n)

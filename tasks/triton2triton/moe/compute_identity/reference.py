"""Zero-computation experts that copy their token (MoE++, Jin et al., 2024; LongCat-Flash, 2025)."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """topk_ids: half identity experts; num_tokens // 4 random tokens have none, the others at least one."""
    tokens, top_k, experts, device = case["num_tokens"], case["top_k"], case["num_experts"], generator.device
    ids = torch.randint(0, 2 * experts, (count, tokens, top_k), generator=generator, device=device)
    place = torch.randint(0, top_k, (count, tokens, 1), generator=generator, device=device)
    ids = ids.scatter(2, place, ids.gather(2, place) % experts + experts)
    none = torch.rand(count, tokens, generator=generator, device=device).argsort(dim=1) < tokens // 4
    return {"topk_ids": torch.where(none.unsqueeze(2), ids % experts, ids)}


def reference(x: torch.Tensor, topk_weights: torch.Tensor, topk_ids: torch.Tensor, num_experts: int) -> torch.Tensor:
    """x, out: (num_tokens, hidden); topk_weights, topk_ids: (num_tokens, top_k)."""
    share = torch.where(topk_ids >= num_experts, topk_weights, 0.0).sum(dim=1, keepdim=True)
    return x * share

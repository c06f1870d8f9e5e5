"""Expert layers of a sparsely gated mixture of experts (Shazeer et al., 2017) on a padded buffer per expert."""

from typing import Any

import torch

from arena.semantics.routing import tokens_per_expert


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """expert_num_tokens: counts that add up to num_tokens; some experts are popular, some idle."""
    sizes = (case[name] for name in ("num_tokens", "num_experts", "max_tokens", "num_active"))
    total, experts, most, active = sizes
    return {"expert_num_tokens": tokens_per_expert(count, total, experts, most, active, generator)}


def unread(expert_num_tokens: torch.Tensor, max_tokens: int) -> dict[str, torch.Tensor]:
    """Rows of x past the tokens of an expert. expert_num_tokens: (count, num_experts)."""
    rows = torch.arange(max_tokens, device=expert_num_tokens.device)
    return {"x": rows >= expert_num_tokens[..., None]}


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    expert_num_tokens: torch.Tensor,
    out: torch.Tensor,
) -> torch.Tensor:
    """x: (num_experts, max_tokens, K); weight: (num_experts, N, K); bias: (num_experts, N)."""
    for expert, tokens in enumerate(expert_num_tokens.tolist()):
        rows = x[expert, :tokens] @ weight[expert].T
        out[expert, :tokens] = rows if bias is None else rows + bias[expert]
    return out

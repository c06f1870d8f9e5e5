"""Expert products with a scale for every token and group of k, and for every block of weights (DeepSeek-V3, 2024)."""

from typing import Any

import torch

from arena.semantics.routing import permutations, tokens_per_expert


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """expert_ids: ascending, several blocks of popular experts, and -1 in num_unused random places."""
    blocks, used = case["num_blocks"], case["num_blocks"] - case["num_unused"]
    counts = tokens_per_expert(count, used, case["num_experts"], used, case["num_active"], generator)
    turns = torch.arange(used, device=generator.device).expand(count, -1).contiguous()
    owners = torch.searchsorted(counts.cumsum(1), turns, right=True)
    places = permutations(count, blocks, generator)[:, :used].sort().values
    ids = torch.full((count, blocks), -1, dtype=torch.int64, device=generator.device)
    return {"expert_ids": ids.scatter_(1, places, owners)}


def reference(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scales: torch.Tensor,
    b_scales: torch.Tensor,
    expert_ids: torch.Tensor,
    out: torch.Tensor,
    group_n: int,
    group_k: int,
) -> torch.Tensor:
    """a: (rows, K); b: (num_experts, N, K); a_scales: (rows, groups); b_scales: (num_experts, n groups, groups)."""
    of_k = (torch.arange(a.shape[1], device=a.device) // group_k).clamp(max=a_scales.shape[1] - 1)
    of_n = (torch.arange(b.shape[1], device=a.device) // group_n).clamp(max=b_scales.shape[1] - 1)
    expert_of_row = expert_ids.repeat_interleave(a.shape[0] // expert_ids.numel())
    for expert in sorted(set(expert_ids.tolist()) - {-1}):
        rows = torch.nonzero(expert_of_row == expert)[:, 0]
        weight = b[expert] * b_scales[expert][of_n][:, of_k]
        out[rows] = (a[rows] * a_scales[rows][:, of_k]) @ weight.T
    return out

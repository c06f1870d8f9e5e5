"""Layout of a grouped matrix product: each expert's rows rounded up, one expert after the other."""

from typing import Any

import torch

from arena.semantics.routing import tokens_per_expert


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """expert_num_tokens: counts that add up to num_tokens; some experts are popular, some idle."""
    sizes = (case["num_tokens"], case["num_experts"], case["max_tokens"], case["num_active"])
    return {"expert_num_tokens": tokens_per_expert(count, *sizes, generator)}


def reference(
    expert_num_tokens: torch.Tensor, m_indices: torch.Tensor, alignment: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """expert_num_tokens: (num_experts,); m_indices: (num_rows,); expert_starts: (num_experts + 1,)."""
    counts = expert_num_tokens.long()
    shares = (counts + alignment - 1) // alignment * alignment
    starts = torch.nn.functional.pad(shares.cumsum(0), (1, 0))
    taken = int(starts[-1])
    owner = torch.repeat_interleave(torch.arange(counts.numel(), device=counts.device), shares)
    within = torch.arange(taken, device=counts.device) - starts[owner]
    m_indices[:taken] = torch.where(within < counts[owner], owner, -1).int()
    return starts.int(), m_indices

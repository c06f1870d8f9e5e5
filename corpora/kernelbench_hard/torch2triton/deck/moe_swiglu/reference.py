"""Grouped products with a SwiGLU (Shazeer, GLU Variants Improve Transformer, 2020) of a mixture of experts."""

from typing import Any

import torch

from arena.semantics.routing import permutations, tokens_per_expert


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Offsets of equal experts, of popular and empty ones, or of K experts that have all rows."""
    tokens, experts, top_k = case["T_total"], case["E"], case["K"]
    rows, device = tokens * top_k, generator.device
    if case["skew"] == 0:
        counts = (rows + experts - 1 - torch.arange(experts, device=device)) // experts
        counts = counts.expand(count, -1)
    elif case["skew"] == 1:
        active = min(rows, max(top_k, 3 * experts // 4))
        counts = tokens_per_expert(count, rows, experts, tokens, active, generator)
    else:
        counts = tokens * (permutations(count, experts, generator) < top_k)
    return {"expert_offsets": torch.nn.functional.pad(counts.cumsum(1), (1, 0))}


def reference(
    hidden_states: torch.Tensor, expert_offsets: torch.Tensor, W_gate: torch.Tensor, W_up: torch.Tensor
) -> torch.Tensor:
    """hidden_states: (rows, H); expert_offsets: (E + 1,); W_gate, W_up: (E, H, I); out: (rows, I)."""
    parts = hidden_states.split(expert_offsets.diff().tolist())
    gated = [
        torch.nn.functional.silu(part @ gate) * (part @ up) for part, gate, up in zip(parts, W_gate, W_up, strict=True)
    ]
    return torch.cat(gated)

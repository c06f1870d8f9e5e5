"""SwiGLU with limits (gpt-oss, 2025) of a mixture of experts in MXFP8 (OCP Microscaling Formats 1.0, 2023)."""

from itertools import pairwise
from typing import Any

import torch

from arena.semantics.routing import tokens_per_expert


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Offsets of popular, rare and empty experts."""
    tokens, rows = case["num_tokens"], case["num_tokens"] * case["top_k"]
    counts = tokens_per_expert(count, rows, case["num_experts"], tokens, case["num_active"], generator)
    return {"cu_rows": torch.nn.functional.pad(counts.cumsum(1), (1, 0))}


def reference(
    x: torch.Tensor,
    x_scales: torch.Tensor,
    weight: torch.Tensor,
    weight_scales: torch.Tensor,
    cu_rows: torch.Tensor,
    alpha: float,
    limit: float,
) -> torch.Tensor:
    """x: (rows, hidden); weight: (num_experts, 2 * intermediate, hidden); out: (rows, intermediate)."""
    out = x.new_zeros(len(x), weight.shape[1] // 2)
    offsets = cu_rows.tolist()
    for expert, (first, end) in enumerate(pairwise(offsets)):
        if first < end:
            rows = _scaled(x[first:end], x_scales[first:end])
            gate, up = (rows @ _scaled(weight[expert], weight_scales[expert]).T).chunk(2, dim=1)
            gate = gate.clamp(max=limit)
            out[first:end] = gate * torch.sigmoid(alpha * gate) * (up.clamp(-limit, limit) + 1)
    return out


def _scaled(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Values of a row times the power of two of their 32 neighbours."""
    groups = values.unflatten(-1, (-1, 32))
    powers = torch.ldexp(torch.ones_like(groups[..., 0]), scales.int() - 127)
    return (groups * powers.unsqueeze(-1)).flatten(-2)

"""Bounded gates (SiTU of Kimi-K3, 2026) of a mixture of experts in MXFP4 (OCP Microscaling Formats 1.0, 2023)."""

from itertools import pairwise
from typing import Any

import torch

from arena.semantics.routing import choose_experts, in_parts

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
BLOCK = 32


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Choices of popular, rare and idle experts, sorted by expert."""
    tokens, experts, top_k = case["num_tokens"], case["num_experts"], case["top_k"]

    def draw(sets: int) -> dict[str, torch.Tensor]:
        chosen = choose_experts(sets, tokens, experts, top_k, generator, 3.0, case["num_active"]).flatten(1).long()
        counts = torch.zeros(sets, experts, dtype=torch.int64, device=chosen.device)
        counts.scatter_add_(1, chosen, torch.ones_like(chosen))
        offsets = torch.nn.functional.pad(counts.cumsum(1), (1, 0))
        return {"cu_rows": offsets, "row_tokens": chosen.argsort(dim=1) // top_k}

    return in_parts(count, tokens * experts, draw)


def reference(
    x: torch.Tensor,
    qweight: torch.Tensor,
    scales: torch.Tensor,
    cu_rows: torch.Tensor,
    row_tokens: torch.Tensor,
    gate_bound: float,
    up_bound: float,
) -> torch.Tensor:
    """x: (num_tokens, hidden); qweight: (num_experts, 2 * intermediate, hidden / 2); out: (rows, intermediate)."""
    out = x.new_zeros(len(row_tokens), qweight.shape[1] // 2)
    for expert, (first, end) in enumerate(pairwise(cu_rows.tolist())):
        if first < end:
            weight = _weight(qweight[expert], scales[expert], x.dtype)
            gate, up = (x[row_tokens[first:end].long()] @ weight.T).chunk(2, dim=1)
            gated = gate_bound * torch.tanh(gate / gate_bound) * torch.sigmoid(gate)
            out[first:end] = gated * up_bound * torch.tanh(up / up_bound)
    return out


def _weight(qweight: torch.Tensor, scales: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    numbers = torch.tensor([*E2M1, *(-number for number in E2M1)], dtype=dtype, device=qweight.device)
    codes = torch.stack([qweight & 15, qweight >> 4], dim=-1).flatten(-2).int()
    powers = torch.ldexp(torch.ones_like(scales, dtype=dtype), scales.int() - 127)
    return numbers[codes] * powers.repeat_interleave(BLOCK, dim=1)

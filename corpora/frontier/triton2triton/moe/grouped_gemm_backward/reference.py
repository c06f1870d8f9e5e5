"""Gradients of the products of a sparsely gated mixture of experts (Shazeer et al., 2017)."""

from itertools import pairwise
from typing import Any

import torch

from arena.semantics.routing import tokens_per_expert


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Offsets of popular, rare and empty experts."""
    rows = case["num_rows"] - case["num_padding"]
    counts = tokens_per_expert(count, rows, case["num_experts"], rows, case["num_active"], generator)
    return {"cu_rows": torch.nn.functional.pad(counts.cumsum(1), (1, 0))}


def unread(cu_rows: torch.Tensor, num_rows: int) -> dict[str, torch.Tensor]:
    """Rows of padding. cu_rows: (count, num_experts + 1)."""
    padding = torch.arange(num_rows, device=cu_rows.device) >= cu_rows[:, -1:]
    return {"x": padding, "grad_out": padding}


def reference(
    x: torch.Tensor, grad_out: torch.Tensor, weight: torch.Tensor, cu_rows: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """x, grad_x: (num_rows, K); grad_out: (num_rows, N); weight, grad_weight: (num_experts, N, K)."""
    grad_x, grad_weight = torch.zeros_like(x), torch.zeros_like(weight)
    for expert, (first, end) in enumerate(pairwise(cu_rows.tolist())):
        if first < end:
            grad_x[first:end] = grad_out[first:end] @ weight[expert]
            grad_weight[expert] = grad_out[first:end].T @ x[first:end]
    return grad_x, grad_weight

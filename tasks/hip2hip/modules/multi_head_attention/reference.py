"""Multi-head attention with learned projections (Vaswani et al., 2017), scores and softmax written out."""

from typing import Any

import torch
import torch.nn.functional as F


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    query_weight: torch.Tensor,
    query_bias: torch.Tensor,
    key_weight: torch.Tensor,
    value_weight: torch.Tensor,
    value_bias: torch.Tensor,
    output_weight: torch.Tensor,
    output_bias: torch.Tensor,
    H: int,
    D: int,
) -> torch.Tensor:
    """query, y: (B, L, E = H D); key, value: (B, S, E); mask: (B, L, S) or None; weights: (E, E); biases: (E,).

    A masked score is the lowest number of its dtype, since float16 has no -1e9; beside any other score, exp() of
    either is zero.
    """

    def heads(projected: torch.Tensor) -> torch.Tensor:
        return projected.unflatten(-1, (H, D)).transpose(1, 2)

    q = heads(F.linear(query, query_weight, query_bias))
    k = heads(F.linear(key, key_weight))
    v = heads(F.linear(value, value_weight, value_bias))
    scores = q @ k.transpose(2, 3) / D**0.5
    if mask is not None:
        scores = scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min)
    context = torch.softmax(scores, dim=-1) @ v
    return F.linear(context.transpose(1, 2).flatten(2), output_weight, output_bias)


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """A mask whose queries differ in how many keys they see, from none to all of them."""
    chance = {"generator": generator, "device": generator.device}
    seen = torch.rand(count, case["B"], case["L"], 1, **chance)
    return {"mask": torch.rand(count, case["B"], case["L"], case["S"], **chance) < seen}

"""Experts in fp8 with scales of blocks and of tokens' runs (DeepSeek-V3 Technical Report, 2024, section 3.3)."""

from typing import Any

import torch
from torch.nn.functional import silu

from arena.semantics.quantize import blockwise, fp8_codes, largest_of, scales_of
from arena.semantics.routing import choose_experts, in_parts

BLOCK = 128


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Choices of popular, rare and idle experts."""
    tokens, experts = case["num_tokens"], case["num_experts"]

    def draw(sets: int) -> dict[str, torch.Tensor]:
        chosen = choose_experts(sets, tokens, experts, case["top_k"], generator, 3.0, case["num_active"])
        return {"topk_ids": chosen}

    return in_parts(count, tokens * experts, draw)


def reference(
    x: torch.Tensor,
    x_scales: torch.Tensor,
    w13: torch.Tensor,
    w13_scales: torch.Tensor,
    w2: torch.Tensor,
    w2_scales: torch.Tensor,
    topk_ids: torch.Tensor,
    topk_weights: torch.Tensor,
    fp8: torch.dtype,
) -> torch.Tensor:
    """x, out: (num_tokens, hidden); w13: (num_experts, 2 * intermediate, hidden); topk_ids: (num_tokens, top_k)."""
    out = torch.zeros_like(x)
    values = blockwise(x, x_scales, 1, BLOCK)
    for expert in topk_ids.unique().tolist():
        tokens, ranks = (topk_ids == expert).nonzero(as_tuple=True)
        gate, up = (values[tokens] @ blockwise(w13[expert], w13_scales[expert], BLOCK, BLOCK).T).chunk(2, dim=1)
        groups = (silu(gate) * up).unflatten(1, (-1, BLOCK))
        scales = scales_of(groups, largest_of(fp8), 1e-10).unsqueeze(-1)
        h = (fp8_codes(groups / scales, fp8).to(x.dtype) * scales).flatten(1)
        y = h @ blockwise(w2[expert], w2_scales[expert], BLOCK, BLOCK).T
        out.index_add_(0, tokens, y * topk_weights[tokens, ranks].unsqueeze(1))
    return out

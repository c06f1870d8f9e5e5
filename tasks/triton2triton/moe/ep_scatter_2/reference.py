"""Tokens in the order of their experts, by a stable sort (the dispatch of Lepikhin et al., GShard, 2020)."""

from typing import Any

import torch

from arena.semantics.routing import choices_elsewhere, choose_experts, in_parts


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Random codes; choices with popular experts, (choices + 7) // 8 of them elsewhere; starts of aligned shares."""
    tokens, hidden, experts, top_k, align = (
        case[name] for name in ("num_tokens", "hidden", "num_experts", "top_k", "alignment")
    )
    device = generator.device

    def codes(rows: int) -> torch.Tensor:
        # fp8 has no infinity. NaN are the bytes 0x7f and 0xff in one format, 0x80 in the other: -1, 127 and -128.
        drawn = torch.randint(-119, 119, (count, rows, hidden), generator=generator, device=device, dtype=torch.int8)
        return drawn if case["dtype"] == torch.int8 else drawn.view(case["dtype"])

    def choices(sets: int) -> dict[str, torch.Tensor]:
        chosen = choose_experts(sets, tokens, experts, top_k, generator, 2.0)
        return {"topk_ids": choices_elsewhere(chosen, (tokens * top_k + 7) // 8, generator)}

    ids = in_parts(count, tokens * experts, choices)["topk_ids"]
    flat = (ids + 1).flatten(1).long()
    counts = torch.zeros(count, experts + 1, dtype=torch.int64, device=device)
    counts.scatter_add_(1, flat, torch.ones_like(flat))
    shares = (counts[:, 1:] + align - 1) // align * align
    return {
        "x": codes(tokens),
        "out": codes(case["num_rows"]),
        "topk_ids": ids,
        "expert_starts": shares.cumsum(1) - shares,
    }


def reference(
    x: torch.Tensor,
    x_scales: torch.Tensor,
    topk_ids: torch.Tensor,
    expert_starts: torch.Tensor,
    out: torch.Tensor,
    out_scales: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x: (num_tokens, hidden); out: (num_rows, hidden); scales: (…, num_groups); output_index: (num_tokens, top_k)."""
    flat = topk_ids.flatten().long()
    order = flat.argsort(stable=True)
    order = order[flat[order] >= 0]
    experts = flat[order]
    counts = torch.bincount(experts, minlength=expert_starts.numel())
    within = torch.arange(experts.numel(), device=flat.device) - (counts.cumsum(0) - counts)[experts]
    rows = expert_starts[experts].long() + within
    tokens = order // topk_ids.shape[1]
    out.view(torch.uint8)[rows] = x.view(torch.uint8)[tokens]
    out_scales[rows] = x_scales[tokens]
    index = torch.full_like(flat, -1)
    index[order] = rows
    return index.view_as(topk_ids).int(), out, out_scales

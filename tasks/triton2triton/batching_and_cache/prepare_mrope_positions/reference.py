"""Positions for multimodal rotary embeddings (Wang et al., Qwen2-VL, 2024)."""

from typing import Any

import torch

from arena.semantics.ragged import draw_requests, owners


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """About half of the requests are in prefill, the others decode behind their prompt."""
    return draw_requests(
        case["num_reqs"], case["num_slots"], case["max_len"], case["max_query"], count=count, generator=generator
    )


def reference(
    prefill_positions: torch.Tensor,
    position_delta: torch.Tensor,
    prefill_lens: torch.Tensor,
    num_computed_tokens: torch.Tensor,
    cu_seqlens: torch.Tensor,
    idx_mapping: torch.Tensor,
    positions: torch.Tensor,
) -> torch.Tensor:
    """prefill_positions: (num_slots, 3, max_len); positions: (3, num_reqs * max_query)."""
    request = owners(cu_seqlens)
    slot = idx_mapping.long()[request]
    within = torch.arange(request.numel(), device=request.device) - cu_seqlens.long()[request]
    place = num_computed_tokens[slot] + within
    in_prefill = num_computed_tokens[slot] < prefill_lens[slot]
    listed = prefill_positions[slot, :, place.where(in_prefill, 0)].T.long()
    positions[:, : request.numel()] = torch.where(in_prefill, listed, place + position_delta[slot])
    return positions

"""Chunks of prompts, one slice assignment for each request in prefill."""

from typing import Any

import torch

from arena.semantics.ragged import draw_requests, spans


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """About half of the requests are in prefill, the others decode behind their prompt."""
    return draw_requests(
        case["num_reqs"], case["num_slots"], case["max_len"], case["max_query"], count=count, generator=generator
    )


def reference(
    token_ids: torch.Tensor,
    prefill_lens: torch.Tensor,
    num_computed_tokens: torch.Tensor,
    cu_seqlens: torch.Tensor,
    idx_mapping: torch.Tensor,
    input_ids: torch.Tensor,
    next_prefill_tokens: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """token_ids: (num_slots, max_len); input_ids: (num_reqs * max_query,); next_prefill_tokens: (num_slots,)."""
    slots = idx_mapping.tolist()
    computed = num_computed_tokens[idx_mapping.long()].tolist()
    lengths = prefill_lens[idx_mapping.long()].tolist()
    for slot, first, length, (begin, end) in zip(slots, computed, lengths, spans(cu_seqlens), strict=True):
        if first < length:
            after = first + end - begin
            input_ids[begin:end] = token_ids[slot, first:after]
            if after < length:
                next_prefill_tokens[slot] = token_ids[slot, after]
    return input_ids, next_prefill_tokens

"""Chunks of the prompts of requests in prefill."""

from typing import Any

import torch

from arena.semantics.ragged import draw_requests, owners


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
    slots, starts = idx_mapping.long(), cu_seqlens[:-1]
    first, length = num_computed_tokens[slots], prefill_lens[slots]
    after = first + cu_seqlens.diff()
    requests = owners(cu_seqlens)
    tokens = (first < length)[requests].nonzero().flatten()
    requests = requests[tokens]
    input_ids[tokens] = token_ids[slots[requests], first[requests] + tokens - starts[requests]]
    unfinished = after < length
    next_prefill_tokens[slots[unfinished]] = token_ids[slots[unfinished], after[unfinished]]
    return input_ids, next_prefill_tokens

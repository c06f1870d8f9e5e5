"""EAGLE's first draft step (Li et al., 2024): token ids shifted by one against positions."""

from typing import Any

import torch

from arena.semantics.ragged import owners


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Places spread over the requests, one each at least; of a request's further places, any number is rejected."""
    device, reqs = generator.device, case["num_reqs"]
    chosen = torch.randint(0, reqs, (count, case["num_tokens"] - reqs), generator=generator, device=device)
    further = torch.zeros(count, reqs, dtype=torch.int64, device=device)
    further.scatter_add_(1, chosen, torch.ones_like(chosen))
    share = torch.rand(count, reqs, generator=generator, device=device, dtype=torch.float64)
    rejected = (share * (further.clamp(max=case["max_spec_len"]) + 1)).long()
    sums = (further + 1).cumsum(dim=-1)
    return {"num_rejected": rejected, "cu_seqlens": torch.cat([torch.zeros_like(sums[:, :1]), sums], dim=-1)}


def reference(
    target_input_ids: torch.Tensor,
    target_positions: torch.Tensor,
    last_sampled_tokens: torch.Tensor,
    next_prefill_tokens: torch.Tensor,
    num_sampled: torch.Tensor,
    num_rejected: torch.Tensor,
    cu_seqlens: torch.Tensor,
    idx_mapping: torch.Tensor,
    eagle_input_ids: torch.Tensor,
    eagle_positions: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """ids and positions: (num_tokens,); last_token_indices: (num_reqs,)."""
    slots, reqs = idx_mapping.long(), owners(cu_seqlens)
    last = (cu_seqlens[1:] - 1 - num_rejected).long()
    places = torch.arange(len(reqs), device=reqs.device)
    sampled = torch.where(num_sampled > 0, last_sampled_tokens[slots], next_prefill_tokens[slots]).int()
    shifted = torch.where(places < last[reqs], target_input_ids.roll(-1), sampled[reqs])
    kept = places <= last[reqs]
    input_ids = torch.where(kept, shifted, eagle_input_ids)
    return last, input_ids, torch.where(kept, target_positions, eagle_positions)

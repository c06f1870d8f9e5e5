"""Parallel drafting: a batch with room for a bonus token and masks behind every request."""

from typing import Any

import torch

from arena.semantics.ragged import owners


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Places spread over the requests, one each at least; of a request's further places, up to 8 are rejected."""
    device, reqs = generator.device, case["num_reqs"]
    chosen = torch.randint(0, reqs, (count, case["num_tokens"] - reqs), generator=generator, device=device)
    further = torch.zeros(count, reqs, dtype=torch.int64, device=device)
    further.scatter_add_(1, chosen, torch.ones_like(chosen))
    share = torch.rand(count, reqs, generator=generator, device=device, dtype=torch.float64)
    sums = (further + 1).cumsum(dim=-1)
    return {
        "num_rejected": (share * (further.clamp(max=8) + 1)).long(),
        "cu_seqlens": torch.cat([torch.zeros_like(sums[:, :1]), sums], dim=-1),
    }


def reference(
    target_input_ids: torch.Tensor,
    target_positions: torch.Tensor,
    next_token_ids: torch.Tensor,
    num_rejected: torch.Tensor,
    cu_seqlens: torch.Tensor,
    shift_input_ids: bool,
    padding_token_id: int,
    mask_token_id: int,
    num_extra: int,
) -> tuple[torch.Tensor, ...]:
    """target ids and positions: (num_tokens,); the first three results: (num_tokens + num_reqs * num_extra,)."""
    num_reqs = len(next_token_ids)
    wider = cu_seqlens.long() + num_extra * torch.arange(num_reqs + 1, device=cu_seqlens.device)
    reqs = owners(wider)
    j = torch.arange(len(reqs), device=reqs.device) - wider[reqs]
    begins = cu_seqlens[reqs].long()
    valid = cu_seqlens.diff().long() - num_rejected
    bonus = valid - 1 if shift_input_ids else valid
    kept, place = (valid + num_extra)[reqs], bonus[reqs]
    source = (begins + j + int(shift_input_ids)).clamp(max=len(target_input_ids) - 1)
    ids = torch.where(j < place, target_input_ids[source], torch.where(j == place, next_token_ids[reqs], mask_token_id))
    positions = torch.where(j < kept, target_positions[begins] + j, 0)
    kinds = (j >= place).char() + (j > place) + (j >= kept)
    return torch.where(j < kept, ids, padding_token_id), positions, kinds, (wider[:-1] + bonus).int()

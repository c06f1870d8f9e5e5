"""Prompts shifted by one, for their log-probabilities."""

from typing import Any

import torch

from arena.semantics.ragged import owners


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Prompts of half their room or more, and contexts of up to half of a prompt; many chunks end with their prompt."""
    shape = (2, count, case["num_slots"])
    drawn = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
    prompt_lens = (case["max_len"] * (1 + drawn[0]) / 2).round().long()
    return {"prompt_lens": prompt_lens, "num_computed_tokens": (drawn[1] - 0.2).clamp(min=0) * prompt_lens / 2}


def reference(
    token_ids: torch.Tensor,
    prompt_lens: torch.Tensor,
    num_computed_tokens: torch.Tensor,
    cu_seqlens: torch.Tensor,
    idx_mapping: torch.Tensor,
) -> torch.Tensor:
    """token_ids: (num_slots, max_len); cu_seqlens: (num_reqs + 1,); next_token_ids: (num_tokens,)."""
    reqs = owners(cu_seqlens)
    slots = idx_mapping[reqs].long()
    within = torch.arange(len(reqs), device=reqs.device) - cu_seqlens[reqs]
    following = num_computed_tokens[slots] + within + 1
    known = following < prompt_lens[slots]
    return torch.where(known, token_ids[slots, torch.where(known, following, 0)], -1).long()

"""Padded drafting of EAGLE (Li et al., 2024): the last token that counts."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """About one request in four without drafts, which has one valid token or none; others keep any number of theirs."""
    device, most = generator.device, case["max_spec_len"]

    def uniform() -> torch.Tensor:
        return torch.rand(count, case["num_reqs"], generator=generator, device=device, dtype=torch.float64)

    def offsets(lengths: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.zeros_like(lengths[:, :1]), lengths.cumsum(dim=-1)], dim=-1)

    drafts = torch.where(uniform() < 0.25, 0, 1 + (most * uniform()).long())
    extra = ((case["max_extra"] + 1) * uniform()).long()
    return {
        "cu_num_draft_tokens": offsets(drafts),
        "valid_counts": torch.where(drafts > 0, 1 + ((drafts + 1) * uniform()).long(), (2 * uniform()).long()),
        "cu_seqlens": offsets(drafts + 1 + extra),
    }


def reference(
    cu_num_draft_tokens: torch.Tensor, valid_counts: torch.Tensor, cu_seqlens: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """cu_num_draft_tokens, cu_seqlens: (num_reqs + 1,); all others: (num_reqs,)."""
    drafts = cu_num_draft_tokens.diff()
    num_rejected = torch.where(drafts > 0, drafts + 1 - valid_counts, 0)
    return cu_seqlens[1:] - 1 - num_rejected, num_rejected

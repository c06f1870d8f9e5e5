"""Accepted and rejected tokens of each request."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """1 to max_spec_len + 1 logits for each request, of which 1 or more have given a token."""
    shape, most = (count, case["num_reqs"]), case["max_spec_len"] + 1
    lengths = torch.randint(1, most + 1, shape, generator=generator, device=generator.device)
    share = torch.rand(shape, generator=generator, device=generator.device, dtype=torch.float64)
    sums = lengths.cumsum(dim=-1)
    return {
        "cu_num_logits": torch.cat([torch.zeros_like(sums[:, :1]), sums], dim=-1),
        "num_sampled": 1 + (share * lengths).long().clamp(max=most - 1),
    }


def reference(
    seq_lens: torch.Tensor,
    cu_num_logits: torch.Tensor,
    prefill_lens: torch.Tensor,
    idx_mapping: torch.Tensor,
    num_sampled: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """cu_num_logits: (num_reqs + 1,); prefill_lens: (num_slots,); all others: (num_reqs,)."""
    prefilling = seq_lens < prefill_lens[idx_mapping.long()]
    num_rejected = torch.where(prefilling, 0, cu_num_logits.diff() - num_sampled)
    return num_rejected, torch.where(prefilling, 0, num_sampled)

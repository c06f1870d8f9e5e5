"""Padded drafting of EAGLE (Li et al., 2024): the token to continue with."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Rows that end in -1, some of nothing else; one token in ten is beyond the vocabulary."""
    device, shape = generator.device, (count, case["num_reqs"], case["max_spec_len"] + 1)
    vocab = case["vocab_size"]

    def integers(low: int, high: int, *sizes: int) -> torch.Tensor:
        return torch.randint(low, high, sizes, generator=generator, device=device)

    tokens, kind = integers(0, vocab, *shape), integers(0, 20, *shape)
    special = torch.where(kind == 0, 0, torch.where(kind == 1, vocab - 1, vocab + integers(0, 2, *shape)))
    tokens = torch.where(kind < 4, special, tokens)
    ends = integers(0, shape[2] + 1, *shape[:2], 1)
    return {"sampled_token_ids": torch.where(torch.arange(shape[2], device=device) < ends, tokens, -1)}


def reference(
    sampled_token_ids: torch.Tensor, backup_token_ids: torch.Tensor, discard: torch.Tensor, vocab_size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """sampled_token_ids: (num_reqs, max_spec_len + 1); all others: (num_reqs,)."""
    valid = (sampled_token_ids != -1) & (sampled_token_ids < vocab_size) & ~discard[:, None]
    columns = torch.arange(1, valid.shape[1] + 1, device=valid.device)
    last = torch.where(valid, columns, 0).amax(dim=-1)
    tokens = torch.cat([backup_token_ids[:, None], sampled_token_ids], dim=1)
    return tokens.gather(1, last[:, None])[:, 0], valid.sum(dim=-1).int()

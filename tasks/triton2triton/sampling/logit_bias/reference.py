"""Allow-lists, logit biases and suppressed stop tokens, one after the other."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Lists of distinct tokens, spread over the vocabulary, in random order, with counts that may be 0."""
    device, vocab, slots = generator.device, case["vocab_size"], case["num_slots"]

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand((count, slots, *shape), generator=generator, device=device, dtype=torch.float64)

    def tokens(size: int) -> torch.Tensor:
        strata = uniform(size).argsort(dim=-1)
        return (strata * (vocab // size) + (vocab // size * uniform(size)).long()).clamp(max=vocab - 1)

    def lengths(size: int) -> torch.Tensor:
        return ((size + 1) * uniform()).long().clamp(max=size)

    sizes = {"allowed": case["max_allowed"], "bias": case["max_bias"], "stop": case["max_stop"]}
    made = {f"{name}_token_ids": tokens(size) for name, size in sizes.items()}
    made |= {f"num_{name}": lengths(size) for name, size in sizes.items()}
    made["num_allowed"] = torch.where(uniform() < 0.45, 0, made["num_allowed"])
    return made


def reference(
    logits: torch.Tensor,
    allowed_token_ids: torch.Tensor,
    num_allowed: torch.Tensor,
    bias_token_ids: torch.Tensor,
    bias: torch.Tensor,
    num_bias: torch.Tensor,
    stop_token_ids: torch.Tensor,
    num_stop: torch.Tensor,
    min_lens: torch.Tensor,
    idx_mapping: torch.Tensor,
    positions: torch.Tensor,
) -> torch.Tensor:
    """logits: (num_reqs, vocab_size); lists: (num_slots, room); counts, min_lens: (num_slots,)."""
    slots = idx_mapping.long()
    allowed = _members(allowed_token_ids[slots], num_allowed[slots], logits)
    limited = num_allowed[slots][:, None] > 0
    logits = torch.where(limited & ~allowed, -torch.inf, logits)
    # Tokens past the count go to a further column, which is dropped.
    tokens = _listed(bias_token_ids[slots], num_bias[slots], logits)
    added = logits.new_zeros(logits.shape[0], logits.shape[1] + 1).scatter_(1, tokens, bias[slots])
    biased = _members(bias_token_ids[slots], num_bias[slots], logits)
    logits = torch.where(biased, logits + added[:, :-1], logits)
    stopping = _members(stop_token_ids[slots], num_stop[slots], logits)
    early = (positions < min_lens[slots])[:, None]
    return torch.where(early & stopping, -torch.inf, logits)


def _listed(token_ids: torch.Tensor, counts: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    given = torch.arange(token_ids.shape[1], device=logits.device) < counts[:, None]
    return torch.where(given, token_ids, logits.shape[1]).long()


def _members(token_ids: torch.Tensor, counts: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Whether each token is on its request's list: (num_reqs, vocab_size), bool."""
    found = torch.zeros(logits.shape[0], logits.shape[1] + 1, dtype=torch.bool, device=logits.device)
    return found.scatter_(1, _listed(token_ids, counts, logits), True)[:, :-1]

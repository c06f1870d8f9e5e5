"""Speculative sampling (Leviathan et al., 2023; Chen et al., 2023): which draft tokens stay."""

from typing import Any

import torch

from arena.semantics.ragged import owners


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Probabilities of 0.02 to 1, one draft in eight of probability 0; limits well away from target probabilities."""
    device, tokens, vocab = generator.device, case["num_draft_tokens"], case["vocab_size"]
    reqs, most = case["num_reqs"], case["max_spec_len"]

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand((count, *shape), generator=generator, device=device)

    drafts = torch.randint(0, vocab, (count, tokens, 1), generator=generator, device=device)
    target_probs = uniform(tokens, vocab).mul_(0.98).add_(0.02)
    draft_probs = uniform(tokens, vocab).mul_(0.98).add_(0.02)
    own = torch.where(uniform(tokens, 1) < 0.125, 0.0, draft_probs.gather(2, drafts))
    draft_probs.scatter_(2, drafts, own)
    q = own[..., 0] if case.get("draft_probs", own) is not None else torch.ones_like(own[..., 0])
    p, limit = target_probs.gather(2, drafts)[..., 0], uniform(tokens)
    # Of max_spec_len places of each request, num_draft_tokens are taken.
    taken = uniform(reqs * most).argsort(dim=-1)[:, :tokens] // most
    lengths = torch.zeros(count, reqs + 1, dtype=torch.int64, device=device)
    lengths.scatter_add_(1, taken + 1, torch.ones_like(taken))
    return {
        "draft_token_ids": drafts[..., 0],
        "draft_probs": draft_probs,
        "target_probs": target_probs,
        "uniform_probs": torch.where((limit * q - p).abs() < 0.005, limit / 2, limit),
        "cu_num_draft_tokens": lengths.cumsum(dim=-1),
    }


def reference(
    draft_token_ids: torch.Tensor,
    draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor,
    bonus_token_ids: torch.Tensor,
    recovered_token_ids: torch.Tensor,
    uniform_probs: torch.Tensor,
    cu_num_draft_tokens: torch.Tensor,
    is_greedy: torch.Tensor,
    output_token_ids: torch.Tensor,
) -> torch.Tensor:
    """draft_probs, target_probs: (num_draft_tokens, vocab_size); output_token_ids: (num_reqs, max_spec_len + 1)."""
    drafts = draft_token_ids.long()[:, None]
    p = target_probs.gather(1, drafts)[:, 0]
    q = torch.ones_like(p) if draft_probs is None else draft_probs.gather(1, drafts)[:, 0]
    accepted = (q > 0) & (p >= uniform_probs * q)

    cu, reqs = cu_num_draft_tokens.long(), owners(cu_num_draft_tokens)
    lengths = cu.diff()
    places = torch.arange(len(reqs), device=reqs.device)
    rejected = torch.where(accepted, lengths[reqs], places - cu[reqs])
    first = lengths.scatter_reduce(0, reqs, rejected, "amin")[:, None]
    columns = torch.arange(output_token_ids.shape[1], device=reqs.device)
    source = (cu[:-1, None] + columns).clamp(max=len(reqs) - 1)
    last = torch.where(first < lengths[:, None], recovered_token_ids[source], bonus_token_ids[:, None])
    rows = torch.where(columns < first, draft_token_ids[source], torch.where(columns > first, -1, last))
    return torch.where(is_greedy[:, None], output_token_ids, rows)

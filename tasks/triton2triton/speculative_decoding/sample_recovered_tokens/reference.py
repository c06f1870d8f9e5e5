"""The residual distribution of speculative sampling (Leviathan et al., 2023), sampled by an exponential race."""

import math
from typing import Any

import torch

from arena.semantics.ragged import owners
from arena.semantics.uneven import make_uneven


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Target and draft distributions that resemble each other; drafts are likely tokens, often the target's best."""
    device, tokens, vocab = generator.device, case["num_draft_tokens"], case["vocab_size"]

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn((count, *shape), generator=generator, device=device)

    scores = normal(tokens, vocab).mul_(2)
    make_uneven(scores, generator, std=2.0)
    drafts = torch.randint(0, vocab, (count, tokens, 1), generator=generator, device=device)
    best = torch.rand(count, tokens, 1, generator=generator, device=device) < 0.75
    drafts = torch.where(best, scores.argmax(dim=-1, keepdim=True), drafts)
    scores.scatter_add_(2, drafts, scores.new_full(drafts.shape, math.log(vocab) - 2))
    made = {"draft_token_ids": drafts[..., 0], "target_probs": scores.softmax(dim=-1)}
    made["draft_probs"] = scores.mul_(0.7).add_(normal(tokens, vocab)).softmax(dim=-1)
    noise = torch.empty(count, case["num_reqs"], vocab, device=device).exponential_(generator=generator)
    return {**made, "noise": noise.clamp_(min=1e-12)}


def reference(
    draft_token_ids: torch.Tensor,
    draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor,
    noise: torch.Tensor,
    cu_num_draft_tokens: torch.Tensor,
) -> torch.Tensor:
    """draft_probs, target_probs: (num_draft_tokens, vocab_size); noise: (num_reqs, vocab_size)."""
    return _scores(draft_token_ids, draft_probs, target_probs, noise, cu_num_draft_tokens).argmax(dim=-1).int()


def regret(
    draft_token_ids: torch.Tensor,
    draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor,
    noise: torch.Tensor,
    cu_num_draft_tokens: torch.Tensor,
    recovered_token_ids: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """How much of the best score is lost, as a share of it; infinite for an index out of range."""
    scores = _scores(draft_token_ids, draft_probs, target_probs, noise, cu_num_draft_tokens)
    valid = (recovered_token_ids >= 0) & (recovered_token_ids < scores.shape[1])
    chosen = scores.gather(1, torch.where(valid, recovered_token_ids, 0).long()[:, None])[:, 0]
    best = scores.amax(dim=-1)
    lost = torch.where(best > 0, (best - chosen) / torch.where(best > 0, best, 1), 0)
    return {"recovered_token_ids": torch.where(valid, lost, torch.inf)}


def _scores(
    draft_token_ids: torch.Tensor,
    draft_probs: torch.Tensor | None,
    target_probs: torch.Tensor,
    noise: torch.Tensor,
    cu_num_draft_tokens: torch.Tensor,
) -> torch.Tensor:
    if draft_probs is None:
        weights = target_probs.scatter(1, draft_token_ids.long()[:, None], 0)
    else:
        weights = (target_probs - draft_probs).clamp(min=0)
    return weights.div_(noise[owners(cu_num_draft_tokens)])

"""Routing of a mixture of experts with a bias for the choice only and groups (DeepSeek-V3 Technical Report, 2024)."""

import torch
from torch.nn.functional import softplus

_CLOSE = 1e-5
"""difference of scores, relative to 1 + their size, up to which either may be preferred"""


def reference(
    logits: torch.Tensor,
    bias: torch.Tensor | None,
    scoring: int,
    num_groups: int,
    topk_groups: int,
    renormalize: bool,
    factor: float,
    top_k: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """logits: (num_tokens, num_experts); bias: (num_experts,); topk_weights, topk_ids: (num_tokens, top_k)."""
    scores = _scores(logits, scoring)
    choice = (scores if bias is None else scores + bias).detach()
    chosen = _group_scores(choice, num_groups).topk(topk_groups, dim=1).indices
    allowed = torch.zeros(len(logits), num_groups, dtype=torch.bool, device=logits.device).scatter_(1, chosen, True)
    allowed = allowed.repeat_interleave(logits.shape[1] // num_groups, dim=1)
    ids = choice.masked_fill(~allowed, -torch.inf).topk(top_k, dim=1).indices
    return _weights(scores, ids, renormalize, factor), ids.int()


def regret(
    logits: torch.Tensor,
    bias: torch.Tensor | None,
    scoring: int,
    num_groups: int,
    topk_groups: int,
    renormalize: bool,
    factor: float,
    top_k: int,
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """How much greater the score of a choice could be, and how far the weights are from those of the chosen experts."""
    scores = _scores(logits, scoring)
    choice = scores if bias is None else scores + bias
    size = logits.shape[1] // num_groups
    valid = (topk_ids >= 0) & (topk_ids < logits.shape[1])
    ids = topk_ids.long().where(valid, 0)
    valid &= (ids.unsqueeze(2) == ids.unsqueeze(1)).sum(dim=2) == 1
    own = choice.gather(1, ids)
    unordered = (own.cummin(dim=1).values - own).abs() / (1 + own.abs())
    # Groups that a choice entered must be among the greatest, and no more than are allowed.
    group_scores = _group_scores(choice, num_groups)
    limit = group_scores.topk(topk_groups, dim=1).values[:, -1:]
    entered = torch.zeros_like(group_scores, dtype=torch.bool).scatter_(1, ids // size, True)
    too_small = ((limit - group_scores) / (1 + limit.abs())).clamp(min=0).gather(1, ids // size)
    valid &= entered.sum(dim=1, keepdim=True) <= topk_groups
    # Groups clearly above the limit are allowed; of those that tie, the places left over go to the poorest.
    sure = entered | (group_scores > limit + _CLOSE * (1 + limit.abs()))
    tied = ~sure & ((group_scores - limit).abs() <= _CLOSE * (1 + limit.abs()))
    left = (topk_groups - sure.sum(dim=1, keepdim=True)).clamp(min=0)
    rest = choice.scatter(1, ids, -torch.inf).unflatten(1, (num_groups, size)).amax(dim=2)
    poorest = rest.masked_fill(~tied, torch.inf).sort(dim=1).values
    lost = torch.nn.functional.pad(poorest, (1, 0), value=-torch.inf).gather(1, left)
    best = torch.maximum(rest.masked_fill(~sure, -torch.inf).amax(dim=1, keepdim=True), lost.nan_to_num(-torch.inf))
    missed = ((best - own) / (1 + own.abs())).clamp(min=0)
    worst = torch.maximum(torch.maximum(missed, unordered), too_small)
    expected = _weights(scores, ids, renormalize, factor)
    off = (topk_weights - expected).abs() / (expected + 0.01 * expected.amax(dim=1, keepdim=True) + 1e-30)
    return {
        "topk_ids": torch.where(valid & worst.isfinite(), worst, torch.inf),
        "topk_weights": torch.where(off.isfinite(), off, torch.inf),
    }


def _scores(logits: torch.Tensor, scoring: int) -> torch.Tensor:
    if scoring == 0:
        return logits.softmax(dim=1)
    return torch.sigmoid(logits) if scoring == 1 else softplus(logits).sqrt()


def _group_scores(choice: torch.Tensor, num_groups: int) -> torch.Tensor:
    groups = choice.unflatten(1, (num_groups, -1))
    return groups.topk(min(2, groups.shape[2]), dim=2).values.sum(dim=2)


def _weights(scores: torch.Tensor, ids: torch.Tensor, renormalize: bool, factor: float) -> torch.Tensor:
    weights = scores.gather(1, ids)
    if renormalize:
        weights = weights / (weights.sum(dim=1, keepdim=True) + 1e-20)
    return factor * weights

"""Top-k (Fan et al., 2018) and nucleus filters (Holtzman et al., The Curious Case of Neural Text Degeneration)."""

from typing import Any, NamedTuple

import torch

from arena.semantics.edges import draw_counts
from arena.semantics.uneven import make_uneven


class Standing(NamedTuple):
    """Per token: whether it passes top-k, and by how much of the total weight it misses top-p (negative: passes)."""

    in_top_k: torch.Tensor
    excess: torch.Tensor


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Rows of several spreads, a third of them in steps; a quarter of the slots without top-k, another of top-p.

    About one token in sixteen is minus infinity.
    """
    device, vocab, slots = generator.device, case["vocab_size"], (count, case["num_slots"])
    shape = (count, case["num_reqs"], vocab)

    def uniform(*sizes: int) -> torch.Tensor:
        return torch.rand(sizes, generator=generator, device=device)

    spread = 1.5 + 4.5 * uniform(*shape[:2], 1)
    logits = torch.randn(shape, generator=generator, device=device).mul_(spread)
    make_uneven(logits, generator, std=3.0)
    kind = uniform(*shape[:2], 1)
    # The greatest of long steps are zeros of either sign, which are equal.
    stepped = torch.where(kind < 1 / 6, (4 * logits).round_() / 4, ((logits / 8).round_() * 8).clamp_(max=0.0))
    logits = torch.where(kind < 1 / 3, stepped, logits)
    masked = uniform(*shape) < 1 / 16
    spared = torch.randint(0, vocab, (*shape[:2], 1), generator=generator, device=device)
    logits.masked_fill_(masked.scatter_(2, spared, False), -torch.inf)
    some_k = draw_counts(1, vocab, slots, generator)
    top_k = torch.where(uniform(*slots) < 0.25, vocab + (some_k % 2), some_k)
    top_p = torch.where(uniform(*slots) < 0.25, 1.0, 0.05 + 0.94 * uniform(*slots))
    return {"logits": logits, "top_k": top_k, "top_p": top_p}


def reference(
    logits: torch.Tensor, top_k: torch.Tensor | None, top_p: torch.Tensor | None, idx_mapping: torch.Tensor
) -> torch.Tensor:
    """logits, filtered: (num_reqs, vocab_size); top_k, top_p: (num_slots,); idx_mapping: (num_reqs,)."""
    standing = _standing(logits.detach(), top_k, top_p, idx_mapping)
    return torch.where(standing.in_top_k & (standing.excess < 0), logits, -torch.inf)


def regret(
    logits: torch.Tensor,
    top_k: torch.Tensor | None,
    top_p: torch.Tensor | None,
    idx_mapping: torch.Tensor,
    filtered: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """Distance from top-p's limit of each token on its wrong side; infinite where anything else is wrong."""
    standing = _standing(logits, top_k, top_p, idx_mapping)
    wanted = standing.in_top_k & (standing.excess < 0)
    kept, dropped = filtered == logits, filtered == -torch.inf
    wrong = torch.where(standing.in_top_k & (kept | dropped), standing.excess.abs(), torch.inf)
    return {"filtered": torch.where(torch.where(wanted, kept, dropped), 0.0, wrong)}


def _standing(
    logits: torch.Tensor, top_k: torch.Tensor | None, top_p: torch.Tensor | None, idx_mapping: torch.Tensor
) -> Standing:
    slots = idx_mapping.long()
    falling, order = logits.sort(dim=-1, descending=True)
    greater = torch.searchsorted(-falling, -falling)
    limit = logits.shape[1] if top_k is None else top_k[slots][:, None]
    in_top_k = greater < limit
    weights = torch.where(in_top_k, (falling - falling[:, :1]).exp(), 0.0)
    sums = weights.cumsum(dim=-1)
    above = (sums - weights).gather(1, greater) / sums[:, -1:]
    excess = torch.full_like(above, -torch.inf)
    if top_p is not None:
        p = top_p[slots][:, None]
        excess = torch.where(p < 1, above - p, excess)
    back = order.argsort(dim=-1)
    return Standing(in_top_k.gather(1, back), excess.gather(1, back))

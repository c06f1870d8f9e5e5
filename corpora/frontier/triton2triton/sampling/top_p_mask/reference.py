"""The nucleus of Holtzman et al., The Curious Case of Neural Text Degeneration (2020), as a mask."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Rows of several spreads and levels, a third of them in steps; one token in sixteen is minus infinity.

    In every other row one token in eight is far below the others, as an engine hides a token by a finite number.
    """
    device, shape = generator.device, (count, case["num_reqs"], case["vocab_size"])

    def uniform(*sizes: int) -> torch.Tensor:
        return torch.rand(sizes, generator=generator, device=device)

    logits = torch.randn(shape, generator=generator, device=device).mul_(0.5 + 4.5 * uniform(*shape[:2], 1))
    make_uneven(logits, generator, std=3.0)
    kind = uniform(*shape[:2], 1)
    # The greatest of long steps are zeros of either sign, which are equal.
    stepped = torch.where(kind < 1 / 6, (4 * logits).round_() / 4, ((logits / 8).round_() * 8).clamp_(max=0.0))
    logits = torch.where(kind < 1 / 3, stepped, logits + (80 * uniform(*shape[:2], 1) - 40))
    far = (uniform(*shape) < 1 / 8) & (uniform(*shape[:2], 1) < 0.5)
    masked = uniform(*shape) < 1 / 16
    spared = torch.randint(0, shape[2], (*shape[:2], 1), generator=generator, device=device)
    logits.masked_fill_(far.scatter_(2, spared, False), -1e30)
    return {"logits": logits.masked_fill_(masked.scatter_(2, spared, False), -torch.inf)}


def reference(logits: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """logits, mask: (num_reqs, vocab_size); top_p: (num_reqs,)."""
    return (_excess(logits, top_p) < 0).to(torch.uint8)


def regret(logits: torch.Tensor, top_p: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
    """Distance of the sum above a token from top_p, where the token is on the wrong side."""
    excess = _excess(logits, top_p)
    right = mask == (excess < 0).to(mask.dtype)
    return {"mask": torch.where(right, 0.0, torch.where(mask <= 1, excess.abs(), torch.inf))}


def _excess(logits: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Probability of all tokens with a greater logit, less top_p: (num_reqs, vocab_size)."""
    falling, order = logits.sort(dim=-1, descending=True)
    greater = torch.searchsorted(-falling, -falling)
    weights = (falling - falling[:, :1]).exp()
    sums = weights.cumsum(dim=-1)
    above = (sums - weights).gather(1, greater) / sums[:, -1:]
    return (above - top_p[:, None]).gather(1, order.argsort(dim=-1))

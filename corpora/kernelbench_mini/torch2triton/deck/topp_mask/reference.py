"""The nucleus of Holtzman et al., The Curious Case of Neural Text Degeneration (2020), of ordered tokens."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Rows of deviations from 0.3 to 12, as a temperature makes them; in steps, or hidden in places, where asked."""
    shape, device = (count, case["B"], case["V"]), generator.device
    logits = torch.randn(shape, generator=generator, device=device)
    make_uneven(logits, generator)
    spread = torch.rand((*shape[:2], 1), generator=generator, device=device)
    logits *= 0.3 * 40**spread
    if case["steps"]:
        logits = torch.round(logits * case["steps"]) / case["steps"]
    if case["percent_hidden"]:
        lot = torch.rand(shape, generator=generator, device=device)
        spared = torch.randint(0, shape[2], (*shape[:2], 1), generator=generator, device=device)
        hidden = (lot < case["percent_hidden"] / 100).scatter(2, spared, False)
        logits = logits.masked_fill(hidden, -torch.inf)
    return {"logits": logits}


def reference(logits: torch.Tensor, P: float) -> torch.Tensor:
    """logits, mask: (B, V)."""
    return _before(logits) < P


def regret(logits: torch.Tensor, P: float, mask: torch.Tensor) -> dict[str, torch.Tensor]:
    """Distance from P of the sum before a token, where the token is on the wrong side."""
    excess = _before(logits) - P
    return {"mask": torch.where(mask == (excess < 0), 0.0, excess.abs())}


def _before(logits: torch.Tensor) -> torch.Tensor:
    """Return the probability of all tokens that come before each one: (B, V)."""
    order = torch.sort(logits, dim=-1, descending=True, stable=True).indices
    falling = logits.softmax(dim=-1).gather(1, order)
    return torch.zeros_like(falling).scatter(1, order, falling.cumsum(dim=-1) - falling)

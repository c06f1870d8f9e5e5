"""Log-softmax, gathered."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Rows of several spreads around -120 to 120, some that rise by up to 300; one logit in sixteen minus infinity.

    A quarter of the rows begin with minus infinity up to a token in their last eighth.
    """
    device, shape = generator.device, (count, case["num_reqs"], case["vocab_size"])

    def uniform(*sizes: int) -> torch.Tensor:
        return torch.rand(sizes, generator=generator, device=device)

    logits = torch.randn(shape, generator=generator, device=device)
    make_uneven(logits, generator)
    logits = logits.mul_(0.5 + 3 * uniform(*shape[:2], 1)).add_(240 * uniform(*shape[:2], 1) - 120)
    rise = 300 * (3 * uniform(*shape[:2], 1) - 2).clamp(min=0)
    logits.add_(rise * torch.linspace(0, 1, shape[2], device=device))
    masked = uniform(*shape) < 1 / 16
    leading = (uniform(*shape[:2], 1) < 0.25) * (1 - uniform(*shape[:2], 1) / 8) * (shape[2] - 1)
    masked |= torch.arange(shape[2], device=device) < leading.long()
    spared = torch.maximum(leading.long(), (uniform(*shape[:2], 1) * shape[2]).long().clamp(max=shape[2] - 1))
    logits.masked_fill_(masked.scatter_(2, spared, False), -torch.inf)
    wanted = (*shape[:2], case["num_logprobs"])
    tokens = torch.randint(0, shape[2], wanted, generator=generator, device=device)
    return {"logits": logits, "token_ids": torch.where(uniform(*wanted) < 0.125, -1, tokens)}


def reference(logits: torch.Tensor, token_ids: torch.Tensor) -> torch.Tensor:
    """logits: (num_reqs, vocab_size); token_ids, logprobs: (num_reqs, num_logprobs)."""
    found = logits.gather(1, token_ids.clamp(min=0)) - logits.logsumexp(dim=-1, keepdim=True)
    return torch.where(token_ids < 0, -torch.inf, found)

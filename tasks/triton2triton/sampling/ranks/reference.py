"""Competition ranks: one more than the number of greater logits."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Logits in steps of 1/32, one in sixteen minus infinity; half of the tokens are the best of some random ones."""
    device, shape = generator.device, (count, case["num_reqs"], case["vocab_size"])
    logits = torch.randn(shape, generator=generator, device=device).mul_(2).mul_(32).round_().div_(32)
    masked = torch.rand(shape, generator=generator, device=device) < 1 / 16
    logits.masked_fill_(masked, -torch.inf)
    tried = torch.randint(0, shape[2], (*shape[:2], 64), generator=generator, device=device)
    best = logits.gather(2, tried).argmax(dim=-1, keepdim=True)
    first = torch.randint(0, 2, best.shape, generator=generator, device=device) == 0
    return {"logits": logits, "token_ids": tried.gather(2, torch.where(first, 0, best))[..., 0]}


def reference(logits: torch.Tensor, token_ids: torch.Tensor) -> torch.Tensor:
    """logits: (num_reqs, vocab_size); token_ids, ranks: (num_reqs,)."""
    return 1 + (logits > logits.gather(1, token_ids[:, None])).sum(dim=-1)

"""NaN of each row, counted."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Rows without NaN, with a few, and with many; some of them negative; about one logit in eight is infinite."""
    shape = (count, case["num_reqs"], case["vocab_size"])

    def uniform(*sizes: int) -> torch.Tensor:
        return torch.rand(sizes, generator=generator, device=generator.device)

    logits = torch.randn(shape, generator=generator, device=generator.device)
    logits = torch.where(logits.abs() > 1.54, logits / 0, logits)
    share = (1.2 * uniform(*shape[:2], 1) - 0.2).clamp(min=0) ** 3
    chosen = uniform(*shape) < share
    return {"logits": torch.where(chosen, torch.copysign(torch.full_like(logits, torch.nan), logits), logits)}


def reference(logits: torch.Tensor) -> torch.Tensor:
    """logits: (num_reqs, vocab_size); num_nans: (num_reqs,)."""
    return logits.isnan().sum(dim=-1).int()

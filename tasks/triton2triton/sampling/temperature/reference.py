"""Temperature of a softmax, applied to its logits."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """temperature: 0 for about one slot in six, else 0.1 to 2."""
    shape = (count, case["num_slots"])
    drawn = torch.rand((2, *shape), generator=generator, device=generator.device)
    return {"temperature": torch.where(drawn[0] < 1 / 6, 0.0, 0.1 + 1.9 * drawn[1])}


def reference(logits: torch.Tensor, temperature: torch.Tensor, idx_mapping: torch.Tensor) -> torch.Tensor:
    """logits: (num_reqs, vocab_size); temperature: (num_slots,); idx_mapping: (num_reqs,)."""
    divisors = temperature[idx_mapping.long()][:, None]
    return logits / torch.where(divisors == 0, 1.0, divisors)

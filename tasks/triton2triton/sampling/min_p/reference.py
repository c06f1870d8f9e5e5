"""Min-p sampling (Nguyen et al., Turning Up the Heat, 2024): the filter."""

from typing import Any

import torch

from arena.semantics.uneven import make_uneven

MARGIN = 0.001


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """min_p: 0 for about one slot in eight, 1 for another, else log-uniform to 0.6; logits keep off the limit."""
    device, slots = generator.device, (count, case["num_slots"])
    shape = (count, case["num_reqs"], case["vocab_size"])

    def uniform(*sizes: int) -> torch.Tensor:
        return torch.rand(sizes, generator=generator, device=device)

    idx_mapping = uniform(*slots).argsort(dim=-1)[:, : shape[1]]
    kind = uniform(*slots)
    min_p = torch.where(kind < 1 / 8, 0.0, torch.where(kind > 7 / 8, 1.0, 0.6 * (1e-7 / 0.6) ** uniform(*slots)))
    logits = torch.randn(shape, generator=generator, device=device).mul_(4)
    make_uneven(logits, generator, std=4.0)
    masked = uniform(*shape) < 1 / 16
    spared = torch.randint(0, shape[2], (*shape[:2], 1), generator=generator, device=device)
    logits.masked_fill_(masked.scatter_(2, spared, False), -torch.inf)
    limit = logits.amax(dim=-1, keepdim=True) + min_p.gather(1, idx_mapping).log()[..., None]
    logits = torch.where((logits - limit).abs() < 2 * MARGIN, limit - 2 * MARGIN, logits)
    # Where min_p is 1, the greatest logit has been moved as well: one token gets it back.
    certain = (min_p.gather(1, idx_mapping) == 1)[..., None]
    kept = logits.gather(2, spared)
    return {
        "logits": logits.scatter_(2, spared, torch.where(certain, limit, kept)),
        "min_p": min_p,
        "idx_mapping": idx_mapping,
    }


def reference(logits: torch.Tensor, min_p: torch.Tensor, idx_mapping: torch.Tensor) -> torch.Tensor:
    """logits: (num_reqs, vocab_size); min_p: (num_slots,); idx_mapping: (num_reqs,)."""
    limits = logits.amax(dim=-1) + min_p[idx_mapping.long()].log()
    return torch.where(logits < limits[:, None], -torch.inf, logits)

"""Grammar masks as packed bits (Dong et al., XGrammar, 2024)."""

from typing import Any

import torch


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """Half of the rows admit every other token by chance, the others fewer or more: three random words and/or-ed."""
    shape = (count, case["num_masks"], -(-case["vocab_size"] // 32))
    low, high = -(1 << 31), 1 << 31
    words = [torch.randint(low, high, shape, generator=generator, device=generator.device) for _ in range(3)]
    kind = torch.randint(0, 4, (*shape[:2], 1), generator=generator, device=generator.device)
    few, many = words[0] & words[1] & words[2], words[0] | words[1] | words[2]
    return {"bitmask": torch.where(kind == 0, few, torch.where(kind == 1, many, words[0]))}


def reference(logits: torch.Tensor, bitmask: torch.Tensor, row_indices: torch.Tensor) -> torch.Tensor:
    """logits: (num_rows, vocab_size); bitmask: (num_masks, ⌈vocab_size / 32⌉); row_indices: (num_masks,)."""
    bits = bitmask.unsqueeze(-1) >> torch.arange(32, device=logits.device, dtype=torch.int32)
    admitted = (bits & 1).bool().flatten(1)[:, : logits.shape[1]]
    rows = row_indices.long()
    logits[rows] = logits[rows].masked_fill(~admitted, -torch.inf)
    return logits

"""The A side of LoRA (Hu et al., 2021) for tokens sorted by adapter (Chen et al., Punica, 2023)."""

from typing import Any

import torch

from arena.semantics.ragged import spans


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """A random adapter for every token, num_active of them with at least one; tokens of a group in ascending order."""

    def shuffled(size: int) -> torch.Tensor:
        return torch.rand(count, size, generator=generator, device=generator.device).argsort(dim=-1)

    tokens, adapters, active = case["num_tokens"], case["num_loras"], case["num_active"]
    free = (tokens + 5) // 8
    cuts = shuffled(tokens - free - 1)[:, : active - 1].sort(dim=-1).values + 1
    ends = torch.nn.functional.pad(torch.nn.functional.pad(cuts, (1, 0)), (0, 1), value=tokens - free)
    sizes = torch.zeros(count, adapters + 2, dtype=torch.int64, device=generator.device)
    sizes[:, 1] = free
    sizes.scatter_(1, shuffled(adapters)[:, :active] + 2, ends.diff(dim=-1))
    offsets = sizes.cumsum(dim=-1)
    positions = torch.arange(tokens, device=generator.device).expand(count, tokens).contiguous()
    groups = torch.searchsorted(offsets, positions, right=True).gather(1, shuffled(tokens))
    return {"token_order": groups.argsort(dim=-1, stable=True), "lora_offsets": offsets}


def reference(
    x: torch.Tensor, weight: torch.Tensor, token_order: torch.Tensor, lora_offsets: torch.Tensor, scaling: float
) -> torch.Tensor:
    """x: (num_tokens, hidden); weight: (num_slices, num_loras, rank, hidden); out: (num_slices, num_tokens, rank)."""
    out = x.new_zeros(weight.shape[0], x.shape[0], weight.shape[2])
    for adapter, (begin, end) in enumerate(spans(lora_offsets)[1:]):
        tokens = token_order[begin:end].long()
        out[:, tokens] = scaling * (x[tokens] @ weight[:, adapter].mT)
    return out

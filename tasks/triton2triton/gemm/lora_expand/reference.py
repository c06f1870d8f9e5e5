"""The B side of LoRA (Hu et al., 2021) for a batch whose tokens have different adapters (Chen et al., Punica, 2023)."""

from typing import Any

import torch

from arena.semantics.ragged import spans


def make_inputs(case: dict[str, Any], generator: torch.Generator, count: int) -> dict[str, torch.Tensor]:
    """token_lora_ids: runs that take the adapters in turn, (runs + 5) // 8 of them none, in random order."""

    def shuffled(size: int) -> torch.Tensor:
        return torch.rand(count, size, generator=generator, device=generator.device).argsort(dim=-1)

    tokens, adapters = case["num_tokens"], case["num_loras"]
    runs = -(-tokens // case["run_length"])
    turns = torch.arange(runs, device=generator.device)
    ids = shuffled(adapters)[:, turns % adapters].masked_fill(turns >= runs - (runs + 5) // 8, -1)
    ids = ids.gather(1, shuffled(runs))
    return {"token_lora_ids": ids.repeat_interleave(case["run_length"], dim=-1)[:, :tokens]}


def reference(
    x: torch.Tensor,
    weight: torch.Tensor,
    token_lora_ids: torch.Tensor,
    slice_offsets: torch.Tensor,
    out: torch.Tensor,
) -> torch.Tensor:
    """x: (num_slices, num_tokens, rank); weight: (num_loras, out_features, rank); out: (num_tokens, out_features)."""
    out = out.clone()
    for adapter in range(weight.shape[0]):
        tokens = (token_lora_ids == adapter).nonzero().squeeze(-1)
        for values, (begin, end) in zip(x, spans(slice_offsets), strict=True):
            out[tokens, begin:end] += values[tokens] @ weight[adapter, begin:end].T
    return out
